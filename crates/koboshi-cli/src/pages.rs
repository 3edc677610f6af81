//! Tests that the command line accepts every `koboshi …` in a shell block of the documentation.
//!
//! It is a test inside the binary because only here the definition of the command line is available without running it.

#[path = "../tests/common/pages.rs"]
mod blocks;

use clap::Parser;

use crate::args::Cli;

#[test]
fn every_command_in_a_shell_block_parses() {
    let mut count = 0;
    for page in blocks::pages() {
        for block in page.blocks().iter().filter(|block| block.is_shell()) {
            for args in block.commands() {
                let line = args.join(" ");
                let parsed = Cli::try_parse_from(std::iter::once("koboshi".to_owned()).chain(args));
                // `--help` and `--version` are valid too.
                let error = parsed.err().filter(|error| error.use_stderr());
                assert!(
                    error.is_none(),
                    "{}: koboshi {line}\n{}",
                    block.place,
                    error.map_or_else(String::new, |error| error.to_string())
                );
                count += 1;
            }
        }
    }
    assert!(count > 15, "only {count} commands were found");
}

#[test]
fn commands_are_read_as_a_shell_would() {
    let text = "A=1 koboshi serve   # it's said\ncat > koboshi.yaml <<'EOF'\nkoboshi: no\nEOF\nclaude -p \"a | b\" 2>&1 | koboshi explain --header 'a: b' \\\n  --stream > out.txt\n\
                echo koboshi\ncargo run --release -- check && sudo /usr/bin/koboshi status\n";
    let block = blocks::Block {
        place: String::new(),
        info: "sh".to_owned(),
        mark: String::new(),
        text: text.to_owned(),
    };
    let wanted: [&[&str]; 4] =
        [&["serve"], &["explain", "--header", "a: b", "--stream"], &["check"], &["status"]];
    assert_eq!(block.commands(), wanted);
    assert_eq!(block.files(), [("koboshi.yaml".to_owned(), "koboshi: no\n".to_owned())]);
}
