//! Numbers in sentences.

/// Percent with a sign and two significant places: `+0.24 %`, `-12 %`, `0 %`. A true minus sign is
/// used, as the reports are UTF-8.
pub fn signed_percent(value: f64) -> String {
    let text = percent(value.abs());
    match text.as_str() {
        "0 %" => text,
        long if long.starts_with("more") => long.replace("than ", "than +"),
        _ if value < 0.0 => format!("−{text}"),
        _ => format!("+{text}"),
    }
}

/// Percent without a sign of its own: `0.24 %`, `1.6 %`, `12 %`.
pub fn percent(value: f64) -> String {
    if !value.is_finite() {
        return "unknown".into();
    }
    if value.abs() > 1000.0 {
        return "more than 1000 %".into();
    }
    let places = match value.abs() {
        v if v < 0.995 => 2,
        v if v < 9.95 => 1,
        _ => 0,
    };
    let text = format!("{value:.places$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{} %", if text == "-0" { "0" } else { text })
}

/// `42 s`, `4 min 12 s`, `1 h 20 min`.
pub fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        0..10 => format!("{seconds:.1} s"),
        10..60 => format!("{whole} s"),
        60..3600 if whole.is_multiple_of(60) => format!("{} min", whole / 60),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percents_carry_what_matters() {
        assert_eq!(signed_percent(0.2399), "+0.24 %");
        assert_eq!(signed_percent(-2.44), "−2.4 %");
        assert_eq!(signed_percent(-0.0004), "0 %");
        assert_eq!(signed_percent(123.4), "+123 %");
        assert_eq!(signed_percent(15_153.0), "more than +1000 %");
        assert_eq!(percent(0.996), "1 %");
        assert_eq!(percent(f64::INFINITY), "unknown");
        assert_eq!(percent(2.25), "2.2 %");
        assert_eq!(percent(1.0), "1 %");
    }

    #[test]
    fn durations_use_two_units() {
        assert_eq!(duration(252.0), "4 min 12 s");
        assert_eq!(duration(3.25), "3.2 s");
        assert_eq!(duration(120.2), "2 min");
        assert_eq!(duration(4_830.0), "1 h 20 min");
    }
}
