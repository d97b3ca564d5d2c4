//! Number literals.

/// What a number literal stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    Int { value: u64, unsigned: bool, long: bool, decimal: bool },
    Float { value: f64, single: bool },
}

/// Reads the literal `text`, which starts with a digit or `.`.
pub(crate) fn parse(text: &str) -> Result<Number, &'static str> {
    let lower = text.to_ascii_lowercase();
    let hex = lower.starts_with("0x");
    let is_float = lower.contains('.')
        || (hex && lower.contains('p'))
        || (!hex && !lower.starts_with("0b") && lower.contains('e'));
    if is_float { float(&lower, hex) } else { int(&lower) }
}

fn int(text: &str) -> Result<Number, &'static str> {
    let digits = text.trim_end_matches(['u', 'l']);
    let suffix = &text[digits.len()..];
    let (unsigned, long) = match suffix {
        "" => (false, false),
        "u" => (true, false),
        "l" | "ll" => (false, true),
        "ul" | "ull" | "lu" | "llu" => (true, true),
        _ => return Err("this suffix does not exist"),
    };
    let (radix, body) = match (digits.strip_prefix("0x"), digits.strip_prefix("0b")) {
        (Some(body), _) => (16, body),
        (_, Some(body)) => (2, body),
        _ if digits.len() > 1 && digits.starts_with('0') => (8, &digits[1..]),
        _ => (10, digits),
    };
    if body.is_empty() || !body.chars().all(|c| c.is_digit(radix)) {
        return Err("this is not a number");
    }
    let value = u64::from_str_radix(body, radix).map_err(|_| "this number exceeds 64 bits")?;
    Ok(Number::Int { value, unsigned, long, decimal: radix == 10 })
}

fn float(text: &str, hex: bool) -> Result<Number, &'static str> {
    let body = match text.strip_suffix(['f', 'l']) {
        Some(body) if !hex || text.contains('p') => body,
        _ => text,
    };
    let single = body.len() < text.len() && text.ends_with('f');
    let value = if hex { hex_float(&body[2..]) } else { body.parse().ok() };
    let value = value.ok_or("this is not a number")?;
    Ok(Number::Float { value, single })
}

/// `DIGITS[.DIGITS]pEXPONENT`, rounded once when it has at most 64 significant bits.
fn hex_float(text: &str) -> Option<f64> {
    let (digits, exponent) = text.split_once('p')?;
    let mut exponent: i32 = exponent.parse().ok().filter(|e: &i32| e.abs() < 100_000)?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut value: u64 = 0;
    for (index, c) in whole.chars().chain(fraction.chars()).enumerate() {
        let digit = c.to_digit(16)?;
        let after_point = index >= whole.len();
        if value >> 60 == 0 {
            value = value << 4 | u64::from(digit);
            exponent -= if after_point { 4 } else { 0 };
        } else if !after_point {
            exponent += 4;
        }
    }
    // Two steps, so that neither power overflows on its own.
    let half = exponent / 2;
    Some(value as f64 * 2f64.powi(half) * 2f64.powi(exponent - half))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_number_is_read() {
        let int = |value, unsigned, long, decimal| Number::Int { value, unsigned, long, decimal };
        for (text, want) in [
            ("0", int(0, false, false, true)),
            ("42", int(42, false, false, true)),
            ("0x1Fu", int(31, true, false, false)),
            ("0b101", int(5, false, false, false)),
            ("017LL", int(15, false, true, false)),
            ("18446744073709551615ul", int(u64::MAX, true, true, true)),
            ("1.5f", Number::Float { value: 1.5, single: true }),
            ("1e3", Number::Float { value: 1000.0, single: false }),
            (".5", Number::Float { value: 0.5, single: false }),
            ("0x1.8p1", Number::Float { value: 3.0, single: false }),
        ] {
            assert_eq!(parse(text), Ok(want), "{text}");
        }
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in ["08", "1x", "0x", "1uu", "0b2", "1.2.3", "1e", "18446744073709551616"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
