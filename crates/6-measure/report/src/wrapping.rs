//! Text in lines that a terminal shows whole.

use std::fmt::Write;

/// Columns of the words at the left.
pub const LABEL: usize = 11;
/// Columns of a line, where words can be broken so.
pub const WIDTH: usize = 80;
/// Spaces between the statements of one line.
const WIDE_GAP: usize = 3;
/// Where what is said begins at the latest, in a line that has a label.
const LATEST: usize = 24;

/// A line with its label; what does not fit goes on below, indented a little more.
pub fn write_line(out: &mut String, label: &str, text: &str) {
    let _ = write!(out, "{label:<LABEL$}");
    write_words(out, text, LABEL);
}

/// A text in lines, those that are too long broken and hung below where they begin to say something.
pub fn to_width(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let start = begins(line);
        let head: String = line.chars().take(start).collect();
        out.push_str(&head);
        write_words(&mut out, &line[head.len()..], start);
    }
    out
}

/// The column where a line begins to say something: behind its label and two spaces or more, else behind what it is indented by.
fn begins(line: &str) -> usize {
    let indent = line.chars().take_while(|c| *c == ' ').count();
    let words: Vec<char> = line.chars().collect();
    let is_start = |i: &usize| words[*i] != ' ' && words[i - 2..*i] == [' ', ' '];
    (indent + 3..words.len().min(LATEST)).find(is_start).unwrap_or(indent)
}

/// Writes from `start` on. What wide gaps part stays whole if it can.
fn write_words(out: &mut String, text: &str, start: usize) {
    let indent = start + 2;
    let mut column = start;
    let words = words(text);
    for (i, (gap, word)) in words.iter().enumerate() {
        let width = visible(word);
        let following = words[i + 1..].iter().take_while(|(gap, _)| *gap < WIDE_GAP);
        let phrase = width + following.map(|(gap, word)| gap + visible(word)).sum::<usize>();
        let whole = if *gap >= WIDE_GAP && indent + phrase <= WIDTH { phrase } else { width };
        if column + gap + whole > WIDTH && column > start {
            let _ = write!(out, "\n{:indent$}{word}", "");
            column = indent + width;
        } else {
            let _ = write!(out, "{:gap$}{word}", "");
            column += gap + width;
        }
    }
    out.push('\n');
}

/// Columns of a word, without its colours.
fn visible(word: &str) -> usize {
    word.split('\x1b')
        .enumerate()
        .map(|(i, part)| {
            let shown = if i == 0 { part } else { part.split_once('m').map_or("", |(_, rest)| rest) };
            shown.chars().count()
        })
        .sum()
}

/// The words of a text, each with the number of spaces in front of it; a number stays with its sign of percent.
fn words(text: &str) -> Vec<(usize, String)> {
    let mut words: Vec<(usize, String)> = Vec::new();
    let mut gap = 0;
    for word in text.split(' ') {
        match words.last_mut() {
            Some((_, last)) if gap == 0 && word.starts_with('%') => {
                last.push(' ');
                last.push_str(word);
            }
            _ if word.is_empty() => {
                gap += 1;
                continue;
            }
            last => {
                let before = if last.is_some() { gap + 1 } else { gap };
                words.push((before, word.to_owned()));
            }
        }
        gap = 0;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_hang_below_what_they_say() {
        let text = "functions    2 of 10 moved\n  left alone      2  lies in a section that is kept whole: first_function, second_function, \
                    third_function\n                     nothing: the section is kept as the linker made it\n";
        let said = to_width(text);
        assert!(said.lines().all(|line| line.chars().count() <= 80), "{said}");
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines[0], "functions    2 of 10 moved");
        assert!(
            lines[2].starts_with(&format!("{:20}", "")) && lines[2].trim().starts_with("second"),
            "{said}"
        );
        assert_eq!(lines[3], "                     nothing: the section is kept as the linker made it");
    }

    #[test]
    fn what_fits_stays_as_it_is() {
        let text = "a  b   c\n\n    indented text\nno label here\n";
        assert_eq!(to_width(text), text);
        let path = format!("see {}\n", "x".repeat(100));
        assert_eq!(to_width(&path).replace("\n  ", " "), path, "a path stays whole");
    }
}
