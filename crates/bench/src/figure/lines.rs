//! Curves over a logarithmic axis, or over two.

use super::{
    Curve,
    theme::{FAINT, INK, color},
};
use crate::{plot::PlotError, table::seconds};
use plotters::{
    coord::{
        combinators::IntoLogRange,
        ranged1d::{AsRangedCoord, Ranged, ValueFormatter},
    },
    prelude::{
        ChartBuilder, Circle, Color, IntoDrawingArea, IntoFont, LineSeries, PathElement,
        SVGBackend, SeriesLabelPosition,
    },
    style::TRANSPARENT,
};

const SIZE: (u32, u32) = (800, 420);

/// What a kind of figure sets.
struct Look<'a> {
    axes: [&'a str; 2],
    dots: bool,
    legend: SeriesLabelPosition,
    across: &'a dyn Fn(&f64) -> String,
    up: &'a dyn Fn(&f64) -> String,
}

pub(super) fn growth(axes: [&str; 2], curves: &[Curve]) -> Result<String, PlotError> {
    let ([left, right], [low, high]) = bounds(curves)?;
    if low <= 0.0 {
        return Err(PlotError::Empty);
    }
    let (x, y) = ((left / 1.2..right * 1.2).log_scale(), (low / 1.5..high * 1.5).log_scale());
    let plain = |number: &f64| format!("{number}");
    let look = Look {
        axes,
        dots: true,
        legend: SeriesLabelPosition::UpperLeft,
        across: &plain,
        up: &plain,
    };
    draw(curves, x, y, &look)
}

pub(super) fn cumulative(axis: &str, curves: &[Curve]) -> Result<String, PlotError> {
    let ([left, right], _) = bounds(curves)?;
    let look = Look {
        axes: [axis, "share of the units that took at most so long"],
        dots: false,
        legend: SeriesLabelPosition::LowerRight,
        across: &|number| seconds(*number),
        up: &|share| format!("{:.0} %", share * 100.0),
    };
    draw(curves, (left / 1.05..right * 1.05).log_scale(), 0.0..1.0, &look)
}

/// The least and the greatest of both coordinates.
fn bounds(curves: &[Curve]) -> Result<([f64; 2], [f64; 2]), PlotError> {
    let of = |part: fn(&(f64, f64)) -> f64| {
        let all = || curves.iter().flat_map(|curve| &curve.points).map(part);
        [all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max)]
    };
    let (x, y) = (of(|it| it.0), of(|it| it.1));
    if x[0] > x[1] || x[0] <= 0.0 { Err(PlotError::Empty) } else { Ok((x, y)) }
}

fn draw<X, Y>(curves: &[Curve], x: X, y: Y, look: &Look<'_>) -> Result<String, PlotError>
where
    X: AsRangedCoord<Value = f64>,
    X::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
    Y: AsRangedCoord<Value = f64>,
    Y::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    let failed = |error: &dyn std::fmt::Display| PlotError::Draw(error.to_string());
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        let mut chart = ChartBuilder::on(&root)
            .margin(12)
            .x_label_area_size(46)
            .y_label_area_size(74)
            .build_cartesian_2d(x, y)
            .map_err(|error| failed(&error))?;
        let text = || ("sans-serif", 13).into_font().color(&INK);
        chart
            .configure_mesh()
            .x_desc(look.axes[0])
            .y_desc(look.axes[1])
            .x_label_formatter(look.across)
            .y_label_formatter(look.up)
            .axis_style(FAINT)
            .bold_line_style(FAINT.mix(0.3))
            .light_line_style(FAINT.mix(0.0))
            .label_style(text())
            .draw()
            .map_err(|error| failed(&error))?;
        for (place, curve) in curves.iter().enumerate() {
            let color = color(place);
            chart
                .draw_series(LineSeries::new(curve.points.iter().copied(), color.stroke_width(2)))
                .map_err(|error| failed(&error))?
                .label(&curve.name)
                .legend(move |(x, y)| {
                    PathElement::new([(x, y), (x + 18, y)], color.stroke_width(3))
                });
            let dots = curve.points.iter().filter(|_| look.dots);
            let dots = dots.map(|point| Circle::new(*point, 3, color.filled()));
            chart.draw_series(dots).map_err(|error| failed(&error))?;
        }
        chart
            .configure_series_labels()
            .position(look.legend.clone())
            .background_style(TRANSPARENT)
            .border_style(FAINT)
            .label_font(text())
            .draw()
            .map_err(|error| failed(&error))?;
        root.present().map_err(|error| failed(&error))?;
    }
    Ok(svg)
}
