//! Graphs of what grows, as SVG.

use plotters::{
    coord::combinators::IntoLogRange,
    prelude::{
        BLACK, ChartBuilder, Circle, Color, IntoDrawingArea, LineSeries, Palette, Palette99,
        PathElement, SVGBackend, SeriesLabelPosition, WHITE,
    },
};

/// One line of a graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// What it shows.
    pub name: String,
    /// Where it goes; neither coordinate is 0 or less.
    pub points: Vec<(f64, f64)>,
}

/// Why there is no graph.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlotError {
    /// There is nothing to be shown.
    #[error("nothing was measured that a graph could show")]
    Empty,
    /// The library's reason.
    #[error("cannot draw: {0}")]
    Draw(String),
}

/// Draws lines over logarithmic axes, on which what grows in proportion is straight and rises as
/// the diagonal does.
///
/// ```
/// use bench::plot::{Line, growth};
///
/// let points = vec![(1.0, 2.0), (10.0, 20.0)];
/// let svg = growth("Growth", ["how many", "µs"], &[Line { name: "it".into(), points }])?;
/// assert!(svg.starts_with("<svg"));
/// # Ok::<(), bench::plot::PlotError>(())
/// ```
///
/// # Errors
///
/// [`PlotError`].
pub fn growth(title: &str, axes: [&str; 2], lines: &[Line]) -> Result<String, PlotError> {
    let draw = |error: &dyn std::fmt::Display| PlotError::Draw(error.to_string());
    let points = || lines.iter().flat_map(|line| &line.points).copied();
    let range = |part: fn((f64, f64)) -> f64| {
        let all = || points().map(part);
        (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max))
    };
    let ((left, right), (low, high)) = (range(|it| it.0), range(|it| it.1));
    if left > right || left <= 0.0 || low <= 0.0 {
        return Err(PlotError::Empty);
    }
    let mut svg = String::new();
    let root = SVGBackend::with_string(&mut svg, (800, 500)).into_drawing_area();
    root.fill(&WHITE).map_err(|error| draw(&error))?;
    let mut chart = ChartBuilder::on(&root)
        .caption(title, ("sans-serif", 20))
        .margin(15)
        .x_label_area_size(40)
        .y_label_area_size(70)
        .build_cartesian_2d(
            (left / 1.2..right * 1.2).log_scale(),
            (low / 1.5..high * 1.5).log_scale(),
        )
        .map_err(|error| draw(&error))?;
    chart
        .configure_mesh()
        .x_desc(axes[0])
        .y_desc(axes[1])
        .light_line_style(WHITE)
        .draw()
        .map_err(|error| draw(&error))?;
    for (index, line) in lines.iter().enumerate() {
        let color = Palette99::pick(index).to_rgba();
        chart
            .draw_series(LineSeries::new(line.points.iter().copied(), color.stroke_width(2)))
            .map_err(|error| draw(&error))?
            .label(&line.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], color.stroke_width(2)));
        let dots = line.points.iter().map(|point| Circle::new(*point, 3, color.filled()));
        chart.draw_series(dots).map_err(|error| draw(&error))?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE)
        .border_style(BLACK)
        .draw()
        .map_err(|error| draw(&error))?;
    root.present().map_err(|error| draw(&error))?;
    drop(chart);
    drop(root);
    Ok(svg)
}

/// The power of `x` that `y` grows with: 1 for what grows in proportion (the slope of the least
/// squares over the logarithms). `None` for less than two different `x`.
#[must_use]
pub fn exponent(points: &[(f64, f64)]) -> Option<f64> {
    let logs = || points.iter().map(|(x, y)| (x.ln(), y.ln()));
    let count = points.len() as f64;
    let mean = |part: fn((f64, f64)) -> f64| logs().map(part).sum::<f64>() / count;
    let (x, y) = (mean(|it| it.0), mean(|it| it.1));
    let (across, along) = logs().fold((0.0, 0.0), |(across, along), (a, b)| {
        (across + (a - x) * (b - y), along + (a - x) * (a - x))
    });
    (along > 0.0).then(|| across / along)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_their_names_are_drawn() {
        let line = |name: &str, factor: f64| Line {
            name: name.to_owned(),
            points: [1.0, 2.0, 4.0].map(|x| (x, factor * x)).to_vec(),
        };
        let svg = growth("Title", ["count", "ms"], &[line("one", 1.0), line("two", 3.0)]).unwrap();
        for part in ["Title", "count", "ms", "one", "two"] {
            assert!(svg.contains(part), "{part} is missing in {svg}");
        }
        assert_eq!(svg.matches("<circle").count(), 6);
    }

    #[test]
    fn nothing_is_no_graph() {
        assert!(matches!(growth("", ["", ""], &[]), Err(PlotError::Empty)));
    }

    #[test]
    fn exponents_are_those_of_powers() {
        let points = |power: f64| [1.0, 8.0, 64.0, 500.0].map(|x: f64| (x, 3.0 * x.powf(power)));
        for power in [0.0, 0.5, 1.0, 2.0] {
            let found = exponent(&points(power)).unwrap();
            assert!((found - power).abs() < 1e-9, "{found} for {power}");
        }
        assert_eq!(exponent(&[(1.0, 1.0)]), None);
    }
}
