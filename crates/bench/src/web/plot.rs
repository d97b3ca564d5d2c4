//! Figures like the founding paper's: one for each image, with a bar for each server and its
//! quartiles.

use super::{IMAGES, Row};
use crate::plot::PlotError;
use plotters::{
    prelude::{
        BLACK, ChartBuilder, Color, IntoDrawingArea, IntoSegmentedCoord, PathElement, RGBColor,
        Rectangle, SVGBackend, SegmentValue, WHITE,
    },
    style::IntoFont,
};

const PLAIN: RGBColor = RGBColor(150, 150, 150);
const GRAY: RGBColor = RGBColor(40, 90, 160);

/// The figures: name and SVG. Bars are processor time of the server for one request, with the
/// quartiles of the rounds.
///
/// # Errors
///
/// [`PlotError`].
pub fn figures(rows: &[Row]) -> Result<Vec<(String, String)>, PlotError> {
    let mut made = Vec::new();
    for (image, ..) in IMAGES {
        let own: Vec<&Row> = rows.iter().filter(|row| row.image == image).collect();
        if !own.is_empty() {
            made.push((image.to_owned(), figure(image, &own)?));
        }
    }
    if made.is_empty() { Err(PlotError::Empty) } else { Ok(made) }
}

fn figure(image: &str, rows: &[&Row]) -> Result<String, PlotError> {
    let draw = |error: &dyn std::fmt::Display| PlotError::Draw(error.to_string());
    let most = rows.iter().map(|row| row.cpu_us.upper_quartile).fold(1.0, f64::max);
    let names: Vec<String> = (rows.iter())
        .map(|row| format!("{}{}", row.server, if row.gray { ", gray" } else { ", plain" }))
        .collect();
    let mut svg = String::new();
    let root =
        SVGBackend::with_string(&mut svg, (860, 60 + 34 * rows.len() as u32)).into_drawing_area();
    root.fill(&WHITE).map_err(|error| draw(&error))?;
    let title = format!("Image of {image}: processor time of the server per request");
    let mut chart = ChartBuilder::on(&root)
        .caption(title, ("sans-serif", 18).into_font())
        .margin(10)
        .x_label_area_size(32)
        .y_label_area_size(190)
        .build_cartesian_2d(0.0..most * 1.1, (0..rows.len().max(1) - 1).into_segmented())
        .map_err(|error| draw(&error))?;
    let label = |at: &SegmentValue<usize>| match at {
        SegmentValue::CenterOf(at) | SegmentValue::Exact(at) => {
            names.get(*at).cloned().unwrap_or_default()
        }
        SegmentValue::Last => String::new(),
    };
    chart
        .configure_mesh()
        .disable_y_mesh()
        .x_desc("µs; lines are quartiles")
        .y_labels(rows.len())
        .y_label_formatter(&label)
        .draw()
        .map_err(|error| draw(&error))?;
    let bars = rows.iter().enumerate().map(|(at, row)| {
        let color = if row.gray { GRAY } else { PLAIN };
        let corners =
            [(0.0, SegmentValue::Exact(at)), (row.cpu_us.median, SegmentValue::Exact(at + 1))];
        let mut bar = Rectangle::new(corners, color.filled());
        bar.set_margin(5, 5, 0, 0);
        bar
    });
    chart.draw_series(bars).map_err(|error| draw(&error))?;
    let spreads = rows.iter().enumerate().map(|(at, row)| {
        let ends = [row.cpu_us.lower_quartile, row.cpu_us.upper_quartile];
        PathElement::new(ends.map(|x| (x, SegmentValue::CenterOf(at))), BLACK.stroke_width(2))
    });
    chart.draw_series(spreads).map_err(|error| draw(&error))?;
    root.present().map_err(|error| draw(&error))?;
    drop(chart);
    drop(root);
    Ok(svg)
}
