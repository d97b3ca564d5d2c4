//! Figures as data, drawn as SVG: bars relative to 1 with intervals, growth, steps of a price,
//! cumulative distributions.

mod bar;
mod bars;
mod curve;
mod dots;
mod lines;
mod theme;

pub use bar::Bar;
pub use curve::Curve;

use crate::plot::PlotError;
use serde::{Deserialize, Serialize};

/// A figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Figure {
    /// What stands above it.
    pub title: String,
    /// What it shows, in a sentence for whoever does not see it.
    pub description: String,
    /// What is drawn.
    pub drawing: Drawing,
}

/// What is drawn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Drawing {
    /// Ratios, each a bar from 1 to its value with its interval.
    Bars(Vec<Bar>),
    /// The same, each from where the one before ends.
    Waterfall(Vec<Bar>),
    /// Amounts with their intervals, as dots over a logarithmic axis.
    Dots {
        /// Name of the axis.
        axis: String,
        /// The amounts.
        amounts: Vec<Bar>,
    },
    /// What grows: both axes are logarithmic.
    Growth {
        /// Names of the horizontal and of the vertical axis.
        axes: [String; 2],
        /// The curves.
        curves: Vec<Curve>,
    },
    /// Shares of what takes at most so long: the horizontal axis is logarithmic.
    Cumulative {
        /// Name of the horizontal axis.
        axis: String,
        /// The curves.
        curves: Vec<Curve>,
    },
}

impl Figure {
    /// Whether there is nothing to be drawn.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match &self.drawing {
            Drawing::Bars(bars) | Drawing::Waterfall(bars) => bars.is_empty(),
            Drawing::Dots { amounts, .. } => amounts.is_empty(),
            Drawing::Growth { curves, .. } | Drawing::Cumulative { curves, .. } => {
                curves.iter().all(|curve| curve.points.is_empty())
            }
        }
    }

    /// The figure as SVG, whose parts are named after `id`.
    ///
    /// # Errors
    ///
    /// [`PlotError`], also if there is nothing to be drawn.
    pub fn svg(&self, id: &str) -> Result<String, PlotError> {
        let drawn = match &self.drawing {
            Drawing::Bars(bars) => bars::bars(bars, false),
            Drawing::Waterfall(steps) => bars::bars(steps, true),
            Drawing::Dots { axis, amounts } => dots::dots(axis, amounts),
            Drawing::Growth { axes, curves } => lines::growth([&axes[0], &axes[1]], curves),
            Drawing::Cumulative { axis, curves } => lines::cumulative(axis, curves),
        }?;
        Ok(theme::accessible(&drawn, id, &self.title, &self.description))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(name: &str, value: f64) -> Bar {
        let (group, name) = (String::new(), name.to_owned());
        Bar { group, name, value, low: value - 0.01, high: value + 0.01 }
    }

    fn svg(drawing: Drawing) -> String {
        let (title, description) = ("A <title>".to_owned(), "What it shows".to_owned());
        Figure { title, description, drawing }.svg("one").expect("a figure")
    }

    #[test]
    fn bars_have_names_values_and_an_axis_of_changes() {
        let drawn = svg(Drawing::Bars(vec![bar("fast", 1.01), bar("all", 1.05)]));
        for part in ["fast", "all", "+1.0 %", "+5.0 %", "role=\"img\"", "A &lt;title&gt;"] {
            assert!(drawn.contains(part), "{part} is missing in {drawn}");
        }
        assert!(!drawn.contains("width=\"800\""), "{drawn}");
    }

    #[test]
    fn every_kind_of_drawing_is_drawn_and_nothing_is_refused() {
        let curve = Curve { name: "it".to_owned(), points: vec![(1.0, 0.5), (10.0, 1.0)] };
        let axes = ["n", "ms"].map(str::to_owned);
        svg(Drawing::Growth { axes, curves: vec![curve.clone()] });
        svg(Drawing::Cumulative { axis: "seconds".to_owned(), curves: vec![curve] });
        let amounts = vec![bar("one", 12_345.0), bar("two", 40.0)];
        let drawn = svg(Drawing::Dots { axis: "µs".to_owned(), amounts });
        assert!(drawn.contains("12,345") && drawn.contains("two"), "{drawn}");
        svg(Drawing::Waterfall(vec![bar("one", 1.01), bar("two", 1.03), bar("three", 0.9)]));
        let nothing = Figure {
            title: String::new(),
            description: String::new(),
            drawing: Drawing::Bars(Vec::new()),
        };
        assert!(matches!(nothing.svg("none"), Err(PlotError::Empty)));
    }
}
