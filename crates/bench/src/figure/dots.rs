//! Amounts as dots over a logarithmic axis, each with its interval and beside its name. Bars would
//! have to begin at 0, which such an axis does not have.

use super::{
    Bar,
    theme::{FAINT, INK, color},
};
use crate::plot::PlotError;
use plotters::{
    coord::combinators::IntoLogRange,
    prelude::{
        ChartBuilder, Circle, Color, IntoDrawingArea, IntoFont, PathElement, SVGBackend, Text,
        TextStyle,
    },
    style::text_anchor::{HPos, Pos, VPos},
};

const WIDTH: u32 = 800;
const ROW: u32 = 20;
const AXIS: u32 = 46;
const NAMES: u32 = 210;
const VALUES: u32 = 70;

/// One line of the figure: a group's name, or a dot in its colour.
enum Line<'a> {
    Group(&'a str),
    Dot(&'a Bar, usize),
}

/// Dots, grouped.
pub(super) fn dots(axis: &str, amounts: &[Bar]) -> Result<String, PlotError> {
    let failed = |error: &dyn std::fmt::Display| PlotError::Draw(error.to_string());
    let shown: Vec<&Bar> =
        amounts.iter().filter(|bar| bar.low.is_finite() && bar.low > 0.0).collect();
    if shown.is_empty() {
        return Err(PlotError::Empty);
    }
    let lines = lines(&shown);
    let low = shown.iter().map(|bar| bar.low).fold(f64::INFINITY, f64::min) / 1.3;
    let high = shown.iter().map(|bar| bar.high).fold(0.0, f64::max) * 1.3;
    let mut svg = String::new();
    {
        let height = ROW * lines.len() as u32 + AXIS + 10;
        let root = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        let mut chart = ChartBuilder::on(&root)
            .margin(5)
            .margin_left(NAMES)
            .margin_right(VALUES)
            .x_label_area_size(AXIS - 5)
            .build_cartesian_2d((low..high).log_scale(), lines.len() as f64..0.0)
            .map_err(|error| failed(&error))?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .disable_y_axis()
            .x_desc(axis)
            .x_label_formatter(&|amount| short(*amount))
            .axis_style(FAINT)
            .bold_line_style(FAINT.mix(0.4))
            .light_line_style(FAINT.mix(0.15))
            .label_style(("sans-serif", 13).into_font().color(&INK))
            .draw()
            .map_err(|error| failed(&error))?;
        let text = |text: String, x: i32, y: i32, side, size: i32| {
            let style = TextStyle::from(("sans-serif", size).into_font()).color(&INK);
            Text::new(text, (x, y), style.pos(Pos::new(side, VPos::Center)))
        };
        for (place, line) in lines.iter().enumerate() {
            let middle = place as f64 + 0.5;
            let (_, y) = chart.backend_coord(&(low, middle));
            let (bar, number) = match line {
                Line::Group(name) => {
                    let named = text((*name).to_owned(), 8, y, HPos::Left, 14);
                    root.draw(&named).map_err(|error| failed(&error))?;
                    continue;
                }
                Line::Dot(bar, number) => (bar, color(*number)),
            };
            let whisker = vec![(bar.low, middle), (bar.high, middle)];
            let drawn = chart
                .draw_series([PathElement::new(whisker, number.stroke_width(3))])
                .map(drop)
                .and_then(|()| {
                    let dot = Circle::new((bar.value, middle), 5, number.filled());
                    chart.draw_series([dot]).map(drop)
                });
            drawn.map_err(|error| failed(&error))?;
            let name = text(bar.name.clone(), NAMES as i32 - 6, y, HPos::Right, 13);
            let value = text(short(bar.value), (WIDTH - VALUES) as i32 + 4, y, HPos::Left, 13);
            root.draw(&name).and_then(|()| root.draw(&value)).map_err(|error| failed(&error))?;
        }
        root.present().map_err(|error| failed(&error))?;
    }
    Ok(svg)
}

fn lines<'a>(bars: &[&'a Bar]) -> Vec<Line<'a>> {
    let mut names: Vec<&str> = Vec::new();
    let (mut lines, mut group) = (Vec::new(), "");
    for bar in bars {
        if bar.group != group {
            group = &bar.group;
            lines.push(Line::Group(group));
        }
        let place = names.iter().position(|name| *name == bar.name).unwrap_or_else(|| {
            names.push(&bar.name);
            names.len() - 1
        });
        lines.push(Line::Dot(bar, place));
    }
    lines
}

/// Three digits, without those that say nothing.
fn short(amount: f64) -> String {
    let whole = amount.round();
    let digits = whole.abs().to_string();
    match amount {
        _ if amount < 10.0 => format!("{amount:.1}"),
        _ if digits.len() <= 3 => digits,
        _ => {
            let mut grouped = digits;
            let mut at = grouped.len();
            while at > 3 {
                at -= 3;
                grouped.insert(at, ',');
            }
            grouped
        }
    }
}
