//! Tells output that says something new from output that only repeats itself: an agent in a loop writes all day and makes no progress.
//!
//! A line is known by its words, not by its numbers: counters, times and ids change in every repetition. Only the newest lines are remembered,
//! and of a flood only its beginning is looked at, so that the cost does not depend on what an agent writes.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hasher};

/// How many lines are remembered.
const REMEMBERED: usize = 128;
/// How many lines of one piece of output are looked at.
const MAX_LINES: usize = 16;
/// How much of one line is looked at.
const MAX_LINE: usize = 1024;

/// The newest lines of a run.
#[derive(Debug, Default)]
pub struct Repeats {
    known: VecDeque<u64>,
}

impl Repeats {
    /// Whether these lines say something that the newest ones before them did not.
    pub fn is_new(&mut self, lines: &[u8]) -> bool {
        let mut new = false;
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).take(MAX_LINES) {
            let words = words_of(line);
            if self.known.contains(&words) {
                continue;
            }
            new = true;
            if self.known.len() >= REMEMBERED {
                self.known.pop_front();
            }
            self.known.push_back(words);
        }
        new
    }
}

/// A line without its digits.
fn words_of(line: &[u8]) -> u64 {
    let mut words = DefaultHasher::new();
    for byte in line.iter().take(MAX_LINE).filter(|byte| !byte.is_ascii_digit()) {
        words.write_u8(*byte);
    }
    words.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_was_said_is_nothing_new_whatever_its_numbers() {
        let mut repeats = Repeats::default();
        assert!(repeats.is_new(b"{\"type\":\"api_retry\",\"attempt\":1}\n"));
        assert!(!repeats.is_new(b"{\"type\":\"api_retry\",\"attempt\":22}\n"));
        assert!(repeats.is_new(b"{\"type\":\"api_retry\",\"attempt\":23}\nediting main.rs\n"));
        assert!(!repeats.is_new(b"editing main.rs\n\n"));
    }

    #[test]
    fn a_loop_of_a_few_lines_is_nothing_new_and_work_is() {
        let mut repeats = Repeats::default();
        let step = |name: char, time: u32| format!("{time} step {name}\n").into_bytes();
        for time in 0..1000 {
            let name = char::from(b'a' + u8::try_from(time % 20).unwrap());
            assert_eq!(repeats.is_new(&step(name, time)), time < 20, "{time}");
        }
        // What was said long ago is new again.
        for number in 0..200 {
            assert!(repeats.is_new("x".repeat(number + 1).as_bytes()));
        }
        assert!(repeats.is_new(&step('a', 0)));
        assert!(repeats.known.len() <= REMEMBERED);
    }
}
