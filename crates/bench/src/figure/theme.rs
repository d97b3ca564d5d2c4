//! Colours that can be told apart, on white and on black; and what makes an SVG known to those who
//! do not see it.

use plotters::style::RGBColor;

/// Of text and axes; the report's page replaces it by its own.
pub(super) const INK: RGBColor = RGBColor(0, 0, 0);
/// Of lines that lead the eye.
pub(super) const FAINT: RGBColor = RGBColor(128, 128, 128);

/// Each has a contrast of at least 3 : 1 on white and on the dark page.
const PALETTE: [RGBColor; 8] = [
    RGBColor(0x3b, 0x7d, 0xd8),
    RGBColor(0xc8, 0x64, 0x1b),
    RGBColor(0x2e, 0x8b, 0x57),
    RGBColor(0x8e, 0x5b, 0xd0),
    RGBColor(0xcc, 0x44, 0x55),
    RGBColor(0x1c, 0x8c, 0x8c),
    RGBColor(0x9a, 0x75, 0x1f),
    RGBColor(0xb3, 0x4f, 0xa3),
];

/// The colour of the series at this place.
pub(super) const fn color(place: usize) -> RGBColor {
    PALETTE[place % PALETTE.len()]
}

/// The drawing with a role, a name and a description, as wide as the page lets it be.
pub(super) fn accessible(svg: &str, id: &str, title: &str, description: &str) -> String {
    let Some((head, rest)) = svg.split_once('>') else { return svg.to_owned() };
    let view = head.split("viewBox=\"").nth(1).and_then(|it| it.split('"').next());
    format!(
        "<svg viewBox=\"{}\" xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" \
         aria-labelledby=\"{id}-title {id}-description\">\n<title id=\"{id}-title\">{}</title>\n\
         <desc id=\"{id}-description\">{}</desc>{rest}",
        view.unwrap_or("0 0 800 500"),
        escaped(title),
        escaped(description),
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn luminance(RGBColor(red, green, blue): RGBColor) -> f64 {
        let linear = |part: u8| {
            let share = f64::from(part) / 255.0;
            if share <= 0.04045 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
    }

    #[test]
    fn every_colour_stands_out_on_white_and_on_the_dark_page() {
        for page in [RGBColor(0xff, 0xff, 0xff), RGBColor(0x14, 0x17, 0x1a)] {
            for color in PALETTE.into_iter().chain([FAINT]) {
                let (one, two) = (luminance(page), luminance(color));
                let contrast = (one.max(two) + 0.05) / (one.min(two) + 0.05);
                assert!(contrast >= 3.0, "{contrast} of {color:?} on {page:?}");
            }
        }
    }
}
