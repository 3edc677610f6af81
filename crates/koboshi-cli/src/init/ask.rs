//! The questions of `koboshi init` on a terminal: which language, which providers. Enter takes the value in brackets.

use std::io::{BufRead, Write};

use koboshi_config::init::Choice;
use koboshi_report::phrase::Lang;

use crate::Failure;
use crate::say::Say;

/// A dialog on a terminal.
pub(super) struct Dialog<'d> {
    pub(super) input: &'d mut dyn BufRead,
    pub(super) output: &'d mut dyn Write,
}

impl Dialog<'_> {
    /// The language of the comments; an unknown answer is asked again.
    pub(super) fn language(&mut self, say: &Say) -> Result<Lang, Failure> {
        loop {
            let answer = self.ask(&say.text("init-ask-language", &[("default", say.lang.name())]))?;
            match answer.as_str() {
                "" => return Ok(say.lang),
                tag => match Lang::from_tag(tag) {
                    Some(lang) => return Ok(lang),
                    None => self.say(&say.text("init-ask-unknown", &[("name", tag)]))?,
                },
            }
        }
    }

    /// The providers; Enter takes those of the environment.
    pub(super) fn providers(&mut self, say: &Say, known: &[Choice]) -> Result<Vec<Choice>, Failure> {
        for (number, choice) in known.iter().enumerate() {
            let state = match choice.offer.keys.first() {
                None => say.text("init-ask-keyless", &[]),
                Some(_) if choice.is_ready() => say.text("init-ask-found", &[]),
                Some(_) => say.text("init-ask-missing", &[("name", &say.list(&super::lacks(choice)))]),
            };
            self.say(&format!("  {:>2}  {:<11} {state}", number + 1, choice.offer.name))?;
        }
        let ready: Vec<&str> =
            known.iter().filter(|choice| choice.is_found()).map(|choice| choice.offer.name).collect();
        let none = say.text("init-ask-none", &[]);
        let default = if ready.is_empty() { none } else { ready.join(",") };
        let question = say.text("init-ask-providers", &[("default", &default)]);
        loop {
            let answer = self.ask(&question)?;
            match answer.as_str() {
                "" => return Ok(known.iter().filter(|choice| choice.is_found()).cloned().collect()),
                "none" => return Ok(Vec::new()),
                _ => {}
            }
            match chosen(&answer, known) {
                Ok(choices) => return Ok(choices),
                Err(name) => self.say(&say.text("init-ask-unknown", &[("name", &name)]))?,
            }
        }
    }

    fn say(&mut self, line: &str) -> Result<(), Failure> {
        Ok(writeln!(self.output, "{line}")?)
    }

    /// One line of an answer; the end of the input counts as Enter.
    fn ask(&mut self, question: &str) -> Result<String, Failure> {
        write!(self.output, "{question} ")?;
        self.output.flush()?;
        let mut line = String::new();
        self.input.read_line(&mut line)?;
        Ok(line.trim().to_owned())
    }
}

/// The providers that an answer names, by number or by name.
fn chosen(answer: &str, known: &[Choice]) -> Result<Vec<Choice>, String> {
    let parts = answer.split([',', ' ']).filter(|part| !part.is_empty());
    let mut choices: Vec<Choice> = Vec::new();
    for part in parts {
        let by_number = || part.parse::<usize>().ok().and_then(|number| known.get(number.checked_sub(1)?));
        let by_name = || known.iter().find(|choice| choice.offer.name == part.to_lowercase());
        let found = by_number().or_else(by_name).ok_or_else(|| part.to_owned())?;
        if !choices.contains(found) {
            choices.push(found.clone());
        }
    }
    Ok(choices)
}

#[cfg(test)]
mod tests {
    use koboshi_config::init::{OFFERS, detect};

    use super::*;

    fn answered(input: &str) -> (Lang, Vec<&'static str>, String) {
        let mut say = Say::new(Lang::En).unwrap();
        let lookup = |name: &str| (name == "GEMINI_API_KEY").then(|| "k".to_owned());
        let known: Vec<Choice> = OFFERS.iter().map(|offer| detect(offer, &lookup)).collect();
        let mut output = Vec::new();
        let mut dialog = Dialog { input: &mut input.as_bytes(), output: &mut output };
        say.lang = dialog.language(&say).unwrap();
        let choices = dialog.providers(&say, &known).unwrap();
        let names = choices.iter().map(|choice| choice.offer.name).collect();
        (say.lang, names, String::from_utf8(output).unwrap())
    }

    #[test]
    fn enter_takes_what_is_there() {
        let (lang, names, said) = answered("\n\n");
        assert_eq!((lang, names), (Lang::En, vec!["gemini"]));
        assert!(said.contains("OPENAI_API_KEY is not set") && said.contains("[gemini]"), "{said}");
        assert!(said.contains("ollama      no key needed") && !said.contains("OLLAMA_HOST"), "{said}");
    }

    #[test]
    fn numbers_and_names_are_understood_and_others_asked_again() {
        let (lang, names, said) = answered("de\nja\n1, Anthropic,99\nbanana\n1, Anthropic,1\n");
        assert_eq!((lang, names), (Lang::Ja, vec!["openai", "anthropic"]));
        assert!(
            said.contains("`de` is not in the list") && said.contains("`99` は一覧にありません"),
            "{said}"
        );
        assert_eq!(answered("en\nnone\n").1, Vec::<&str>::new());
    }

    #[test]
    fn an_input_that_ends_is_enter() {
        assert_eq!(answered("").1, ["gemini"]);
    }
}
