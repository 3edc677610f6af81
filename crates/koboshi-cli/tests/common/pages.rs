//! The pages of the documentation, their fenced blocks, and the commands that the blocks show.
//!
//! The shell of the blocks is read by rule of thumb: quotes, comments, continued lines, pipes, redirections and here-documents. Nothing is run.

#![allow(dead_code, reason = "each test uses its part")]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::{Path, PathBuf};

/// A page: its path within the repository, and its text.
pub(crate) struct Page {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// A fenced block of a page.
pub(crate) struct Block {
    /// `page:line`, for messages.
    pub(crate) place: String,
    /// What stands after the fence, such as `yaml` or `yaml rules`.
    pub(crate) info: String,
    /// The line before the fence: the mark of a snippet that is run.
    pub(crate) mark: String,
    pub(crate) text: String,
}

/// Every Markdown page at the top of the repository and below docs/.
pub(crate) fn pages() -> Vec<Page> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut paths = Vec::new();
    collect(&root, false, &mut paths);
    collect(&root.join("docs"), true, &mut paths);
    paths.sort();
    let page = |path: PathBuf| Page {
        name: path.strip_prefix(&root).unwrap().display().to_string(),
        text: std::fs::read_to_string(&path).unwrap(),
    };
    paths.into_iter().map(page).collect()
}

fn collect(folder: &Path, deep: bool, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && deep {
            collect(&path, deep, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

impl Page {
    /// Its fenced blocks, also those inside list items, without their indentation.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        let mut blocks = Vec::new();
        let mut open: Option<(usize, Block)> = None;
        let mut before = "";
        for (number, line) in self.text.lines().enumerate() {
            let indent = line.len() - line.trim_start().len();
            let fence = line.trim_start().strip_prefix("```");
            match (open.take(), fence) {
                (Some((_, block)), Some(_)) => blocks.push(block),
                (None, Some(info)) => {
                    let place = format!("{}:{}", self.name, number + 1);
                    let (info, mark) = (info.trim().to_owned(), before.trim().to_owned());
                    open = Some((indent, Block { place, info, mark, text: String::new() }));
                }
                (Some((outer, mut block)), None) => {
                    block.text.push_str(line.get(outer.min(indent)..).unwrap_or_default());
                    block.text.push('\n');
                    open = Some((outer, block));
                }
                (None, None) => {}
            }
            before = line;
        }
        blocks
    }

    /// The code spans of its prose.
    pub(crate) fn spans(&self) -> impl Iterator<Item = &str> {
        let prose = self.text.lines().filter(|line| !line.trim_start().starts_with("```"));
        prose.flat_map(|line| line.split('`').skip(1).step_by(2))
    }
}

impl Block {
    /// The language, and what else stands beside it.
    pub(crate) fn language(&self) -> (&str, &str) {
        let (language, more) = self.info.split_once(' ').unwrap_or((&self.info, ""));
        (language, more.trim())
    }

    /// Whether it is a shell's.
    pub(crate) fn is_shell(&self) -> bool {
        ["sh", "bash", "console"].contains(&self.language().0)
    }

    /// The files that here-documents of a shell block write: name and text.
    pub(crate) fn files(&self) -> Vec<(String, String)> {
        let mut files = Vec::new();
        let mut lines = self.text.lines();
        while let Some(line) = lines.next() {
            let Some((command, end)) = line.split_once("<<") else { continue };
            let end = end.trim().trim_matches(['\'', '"']);
            let text: Vec<&str> = lines.by_ref().take_while(|line| line.trim() != end).collect();
            let name = command.split_whitespace().last().unwrap_or_default();
            files.push((name.to_owned(), text.join("\n") + "\n"));
        }
        files
    }

    /// The arguments of every `koboshi …` of a shell block, `cargo run -- …` included.
    pub(crate) fn commands(&self) -> Vec<Vec<String>> {
        let mut found = Vec::new();
        for command in simple_commands(&self.without_files()) {
            let mut words = command.iter();
            let first = words.clone().position(|word| word.rsplit('/').next() == Some("koboshi"));
            // What may come before the name of a command.
            let before =
                |word: &String| word == "sudo" || word == "env" || word == "exec" || word.contains('=');
            let is_called = first.is_some_and(|first| command.iter().take(first).all(before));
            let is_cargo = command.starts_with(&["cargo".to_owned(), "run".to_owned()]);
            if is_called {
                found.push(words.skip(first.unwrap_or_default() + 1).cloned().collect());
            } else if is_cargo && words.any(|word| word == "--") {
                found.push(words.cloned().collect());
            }
        }
        found
    }

    /// The text without the content of here-documents.
    fn without_files(&self) -> String {
        let mut kept = String::new();
        let mut lines = self.text.lines();
        while let Some(line) = lines.next() {
            kept.push_str(line);
            kept.push('\n');
            if let Some((_, end)) = line.split_once("<<") {
                let end = end.trim().trim_matches(['\'', '"']);
                let _ = lines.by_ref().find(|line| line.trim() == end);
            }
        }
        kept
    }
}

/// The words of each simple command of a script, redirections left out.
fn simple_commands(script: &str) -> Vec<Vec<String>> {
    let script = script.replace("\\\n", " ");
    let mut commands = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = script.chars().peekable();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '\\') => word.get_or_insert_default().extend(chars.next()),
            (None, '#') if word.is_none() => while chars.next_if(|c| *c != '\n').is_some() {},
            (None, '\n' | '|' | ';' | '&' | '(' | ')' | '`') => {
                commands.last_mut().unwrap().extend(word.take());
                commands.push(Vec::new());
            }
            (None, '<' | '>') => {
                // A number before it is a descriptor; what follows is a file or a descriptor.
                if word.as_ref().is_some_and(|word| !word.chars().all(|c| c.is_ascii_digit())) {
                    commands.last_mut().unwrap().extend(word.take());
                }
                word = None;
                while chars.next_if(|c| " <>&".contains(*c)).is_some() {}
                while chars.next_if(|c| !c.is_whitespace() && !"|;)".contains(*c)).is_some() {}
            }
            (None, c) if c.is_whitespace() => commands.last_mut().unwrap().extend(word.take()),
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    commands.last_mut().unwrap().extend(word);
    commands.retain(|command| !command.is_empty());
    commands
}
