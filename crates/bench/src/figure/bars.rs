//! Ratios as horizontal bars, each beside its name.

use super::{
    Bar,
    theme::{FAINT, INK, color},
};
use crate::{pairs::show::slowdown, plot::PlotError};
use plotters::{
    chart::ChartContext,
    coord::{Shift, types::RangedCoordf64},
    prelude::{
        Cartesian2d, ChartBuilder, Color, DrawingArea, IntoDrawingArea, IntoFont, PathElement,
        Rectangle, SVGBackend, Text, TextStyle,
    },
    style::text_anchor::{HPos, Pos, VPos},
};

const WIDTH: u32 = 800;
const ROW: u32 = 22;
const AXIS: u32 = 46;
const NAMES: u32 = 250;
const VALUES: u32 = 70;

type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;
type Area<'b> = DrawingArea<SVGBackend<'b>, Shift>;

/// One line of the figure.
enum Line<'a> {
    Group(&'a str),
    Bar { bar: &'a Bar, from: f64, color: usize },
}

/// Bars from 1, or each from the end of the one before.
pub(super) fn bars(bars: &[Bar], steps: bool) -> Result<String, PlotError> {
    let failed = |error: &dyn std::fmt::Display| PlotError::Draw(error.to_string());
    let shown: Vec<&Bar> =
        bars.iter().filter(|bar| bar.value.is_finite() && bar.value > 0.0).collect();
    if shown.is_empty() {
        return Err(PlotError::Empty);
    }
    let lines = lines(&shown, steps);
    let (low, high) = range(&shown);
    let height = ROW * lines.len() as u32 + AXIS + 10;
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        let mut chart = ChartBuilder::on(&root)
            .margin(5)
            .margin_left(NAMES)
            .margin_right(VALUES)
            .x_label_area_size(AXIS - 5)
            .build_cartesian_2d(low..high, lines.len() as f64..0.0)
            .map_err(|error| failed(&error))?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .disable_y_axis()
            .x_labels(6)
            .x_desc("against the first setting")
            .x_label_formatter(&|ratio| slowdown(*ratio))
            .axis_style(FAINT)
            .bold_line_style(FAINT.mix(0.4))
            .light_line_style(FAINT.mix(0.0))
            .label_style(("sans-serif", 13).into_font().color(&INK))
            .draw()
            .map_err(|error| failed(&error))?;
        for (place, line) in lines.iter().enumerate() {
            draw(&mut chart, &root, place, line, low).map_err(|error| failed(&error))?;
        }
        let one = [(1.0, 0.0), (1.0, lines.len() as f64)];
        chart
            .draw_series([PathElement::new(one, INK.stroke_width(1))])
            .map_err(|error| failed(&error))?;
        root.present().map_err(|error| failed(&error))?;
    }
    Ok(svg)
}

fn lines<'a>(bars: &[&'a Bar], steps: bool) -> Vec<Line<'a>> {
    let mut names: Vec<&str> = Vec::new();
    let (mut lines, mut group, mut from) = (Vec::new(), "", 1.0);
    for bar in bars {
        if bar.group != group {
            group = &bar.group;
            lines.push(Line::Group(group));
        }
        let color = names.iter().position(|name| *name == bar.name).unwrap_or_else(|| {
            names.push(&bar.name);
            names.len() - 1
        });
        lines.push(Line::Bar { bar, from, color });
        if steps {
            from = bar.value;
        }
    }
    lines
}

/// What the axis shows: 1, every interval, and some air. An interval that is wider than all values
/// does not rule.
fn range(bars: &[&Bar]) -> (f64, f64) {
    let least = bars.iter().map(|bar| bar.value.min(bar.low)).fold(1.0, f64::min);
    let most = bars.iter().map(|bar| bar.value.max(bar.high)).fold(1.0, f64::max);
    let air = ((most - least) * 0.06).max(0.005);
    ((least - air).max(0.0), most + air)
}

type Drawn = Result<(), Box<dyn std::error::Error>>;

fn draw<'b>(
    chart: &mut Chart<'_, 'b>,
    root: &Area<'b>,
    place: usize,
    line: &Line<'_>,
    low: f64,
) -> Result<(), String> {
    let (top, middle, bottom) = (place as f64 + 0.18, place as f64 + 0.5, place as f64 + 0.82);
    let (_, y) = chart.backend_coord(&(low, middle));
    let style = |horizontal, size: i32| -> TextStyle<'_> {
        TextStyle::from(("sans-serif", size).into_font())
            .color(&INK)
            .pos(Pos::new(horizontal, VPos::Center))
    };
    let drawn = || -> Drawn {
        match line {
            Line::Group(name) => {
                let text = Text::new((*name).to_owned(), (8, y), style(HPos::Left, 14));
                root.draw(&text)?;
            }
            Line::Bar { bar, from, color: number } => {
                let ends = [(*from, top), (bar.value, bottom)];
                chart.draw_series([Rectangle::new(ends, color(*number).mix(0.75).filled())])?;
                let whisker = vec![(bar.low, middle), (bar.high, middle)];
                chart.draw_series([PathElement::new(whisker, INK.stroke_width(2))])?;
                for end in [bar.low, bar.high] {
                    let tick = vec![(end, top + 0.1), (end, bottom - 0.1)];
                    chart.draw_series([PathElement::new(tick, INK.stroke_width(2))])?;
                }
                let name =
                    Text::new(bar.name.clone(), (NAMES as i32 - 6, y), style(HPos::Right, 13));
                root.draw(&name)?;
                let right = (WIDTH - VALUES) as i32 + 4;
                root.draw(&Text::new(slowdown(bar.value), (right, y), style(HPos::Left, 13)))?;
            }
        }
        Ok(())
    };
    let mut drawn = drawn;
    drawn().map_err(|error| error.to_string())
}
