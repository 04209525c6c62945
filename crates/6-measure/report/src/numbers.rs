//! Numbers as a reader likes them.

pub use afterlink_bench::numbers::{duration, percent, signed_percent};

/// A share as whole percent.
pub fn share(value: f64) -> String {
    format!("{:.0} %", 100.0 * value)
}

/// Four significant digits with a unit; seconds below one as ms or µs.
pub fn quantity(value: f64, unit: &str) -> String {
    match unit {
        "s" if value < 0.999_95e-3 => return format!("{} µs", significant(value * 1e6)),
        "s" if value < 0.999_95 => return format!("{} ms", significant(value * 1e3)),
        "KiB" if value >= 10_240.0 => return format!("{} MiB", significant(value / 1024.0)),
        _ => {}
    }
    if unit.is_empty() { significant(value) } else { format!("{} {unit}", significant(value)) }
}

/// Four significant digits, thousands grouped.
fn significant(value: f64) -> String {
    if !value.is_finite() {
        return "unknown".into();
    }
    // The magnitude after rounding: 0.99999 is 1.000 and not 1.0000.
    let rounded = format!("{value:.3e}");
    let magnitude: i32 = rounded.split_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or(0);
    let places = (3 - magnitude).clamp(0, 6) as usize;
    let rounded = if magnitude > 3 {
        let unit = 10f64.powi(magnitude - 3);
        (value / unit).round() * unit
    } else {
        value
    };
    group_thousands(&format!("{rounded:.places$}"))
}

/// A number's digits in groups of three.
pub fn group_thousands(text: &str) -> String {
    let (whole, rest) = text.split_once('.').map_or((text, ""), |(w, r)| (w, r));
    let (sign, digits) = whole.strip_prefix('-').map_or(("", whole), |d| ("-", d));
    let mut grouped = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if rest.is_empty() { format!("{sign}{grouped}") } else { format!("{sign}{grouped}.{rest}") }
}

/// Where a value lies among others: `2nd percentile`, `below every layout`.
pub fn percentile(value: f64) -> String {
    match value {
        v if v <= 0.0 => "below every layout".into(),
        v if v >= 100.0 => "above every layout".into(),
        v => format!("{} percentile", ordinal(v)),
    }
}

/// `1st`, `2nd`, `13th`.
fn ordinal(value: f64) -> String {
    let n = value.round().clamp(0.0, 100.0) as u32;
    let ending = match (n % 10, n % 100) {
        (1, t) if t != 11 => "st",
        (2, t) if t != 12 => "nd",
        (3, t) if t != 13 => "rd",
        _ => "th",
    };
    format!("{n}{ending}")
}

/// A p value: `p = 0.034`, `p = 3e-7`.
pub fn p_value(p: f64) -> String {
    match p {
        p if p >= 0.0995 => format!("p = {p:.2}"),
        p if p >= 0.000_995 => format!("p = {p:.3}"),
        p if p < 1e-99 => "p < 1e-99".into(),
        p => format!("p = {p:.0e}"),
    }
}

/// A command as one can type it: words with other than plain characters are quoted.
pub fn shell_line(words: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%{}".contains(c);
    let quoted = words.iter().map(|w| {
        if !w.is_empty() && w.chars().all(plain) {
            w.clone()
        } else {
            format!("'{}'", w.replace('\'', "'\\''"))
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_have_four_digits() {
        assert_eq!(quantity(1.84213, "s"), "1.842 s");
        assert_eq!(quantity(0.0123456, "s"), "12.35 ms");
        assert_eq!(quantity(0.000_012_3, "s"), "12.30 µs");
        assert_eq!(quantity(1_234_567.0, "/s"), "1,235,000 /s");
        assert_eq!(quantity(98_304.0, "KiB"), "96.00 MiB");
        assert_eq!(quantity(42.0, ""), "42.00");
        assert_eq!(quantity(0.999_99, "s"), "1.000 s");
        assert_eq!(share(0.784), "78 %");
    }

    #[test]
    fn ordinals_and_p_values() {
        assert_eq!(
            (ordinal(2.0).as_str(), ordinal(11.4).as_str(), ordinal(93.0).as_str()),
            ("2nd", "11th", "93rd")
        );
        assert_eq!(
            (p_value(0.034).as_str(), p_value(3.2e-7).as_str(), p_value(0.5).as_str()),
            ("p = 0.034", "p = 3e-7", "p = 0.50")
        );
    }

    #[test]
    fn commands_can_be_typed_again() {
        let words = ["sh", "-c", "echo 'x' $y", "{}", ""].map(String::from);
        assert_eq!(shell_line(&words), r"sh -c 'echo '\''x'\'' $y' {} ''");
    }
}
