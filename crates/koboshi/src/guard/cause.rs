//! The cause behind a failure of the environment: three tools that cannot resolve a name say it in three ways.
//!
//! Where something is missing, *what* is missing is part of the cause: a container without `killall`, `pkill` and `ps` has
//! three things missing, and a model that tries the next one has not repeated anything.

use std::sync::LazyLock;

use regex::Regex;

use super::mix::hash;

/// What is behind a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cause {
    id: u64,
    /// It is this or nothing: the words of two failures may be the same, and another thing is missing.
    pub(super) is_missing: bool,
}

/// The cause, where one is known.
pub(super) fn cause(category: &str, text: &str) -> Option<Cause> {
    const NETWORK: &[(&str, &[&str])] = &[
        (
            "dns",
            &[
                "resolve", "enotfound", "getaddrinfo", "name or service", "name resolution", "no such host",
                "eai_again", "err_name_not", "dns",
            ],
        ),
        ("refused", &["refused", "econnrefused", "err_connection_refused"]),
        ("tls", &["certificate", "ssl", "tls", "x509", "cert_"]),
        ("proxy", &["proxy", "tunnel"]),
        (
            "unreachable",
            &["unreachable", "no route", "offline", "internet disconnected", "enetunreach", "ehostunreach"],
        ),
        ("reset", &["reset", "hang up", "econnreset", "closed", "disconnected"]),
    ];
    const RESOURCE: &[(&str, &[&str])] = &[
        ("disk", &["no space", "enospc", "disk", "quota"]),
        ("memory", &["memory", "oom", "137", "heap", "bad_alloc", "enomem"]),
        ("port", &["address already in use", "eaddrinuse", "port"]),
        ("files", &["too many open", "emfile", "enfile", "watchers"]),
        ("lock", &["lock"]),
    ];
    const PERMISSION: &[(&str, &[&str])] = &[
        (
            "policy",
            &["policy", "sandbox", "approval", "not allowed", "rejected", "outside", "workspace", "declined"],
        ),
        ("read_only", &["read-only", "read only", "erofs"]),
        ("permission", &["denied", "not permitted", "eacces", "eperm", "permission", "root"]),
    ];
    const AUTH: &[(&str, &[&str])] = &[("forbidden", &["403", "forbidden"]), ("credentials", &[""])];
    let table = match category {
        "network" => NETWORK,
        "resource" => RESOURCE,
        "permission" => PERMISSION,
        "auth" => AUTH,
        "font" => return Some(environment("font")),
        "missing_module" | "missing_command" => return missing(category, text),
        _ => return None,
    };
    let lower = text.to_lowercase();
    let found = table.iter().find(|(_, words)| words.iter().any(|word| lower.contains(word)))?;
    Some(environment(found.0))
}

fn environment(name: &str) -> Cause {
    Cause { id: hash([name]), is_missing: false }
}

/// The names of what is missing; none where no name is found.
fn missing(category: &str, text: &str) -> Option<Cause> {
    static NAMED: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(
            r#"(?i)no module named ['"]?([\w.-]+)|cannot find (?:module|package) ['"]?([@\w./-]+)|module not found:? .*?['"]([@\w./-]+)['"]|(?:[\w/]+: )?command not found: ([\w.+/-]+)|([\w.+/-]+): (?:command )?not found|['"]?([\w.+/-]+)['"]? is not recognized|package ([\w.]+) does not exist|exec(?:utable file)?:? ?"([\w.+/-]+)":? .*not found|no such (?:command|subcommand|package|crate):? ['"`]?([\w.+/-]+)|unable to locate package ([\w.+-]+)"#,
        )
        .ok()
    });
    let names: Vec<&str> = NAMED
        .as_ref()?
        .captures_iter(text)
        .filter_map(|found| Some(found.iter().skip(1).flatten().next()?.as_str()))
        .collect();
    let last = names.last()?;
    Some(Cause { id: hash([category, last]), is_missing: true })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_part_of_the_cause() {
        let command = |text| cause("missing_command", text).unwrap();
        assert_eq!(command("bash: ps: command not found"), command("/bin/sh: 1: ps: not found"));
        assert_ne!(command("bash: ps: command not found"), command("bash: pkill: command not found"));
        assert_eq!(command("zsh: command not found: ps"), command("bash: ps: command not found"));
        let module = |text| cause("missing_module", text).unwrap();
        assert_ne!(module("No module named 'numpy'"), module("No module named 'scipy'"));
        assert_eq!(module("No module named 'numpy'"), module("ModuleNotFoundError: No module named numpy"));
        assert_eq!(cause("missing_module", "something is not installed"), None);
    }

    #[test]
    fn one_cause_in_other_words_is_one() {
        let network = |text| cause("network", text);
        assert_eq!(network("getaddrinfo ENOTFOUND a"), network("curl: (6) Could not resolve host: a"));
        assert_ne!(network("getaddrinfo ENOTFOUND a"), network("connect ECONNREFUSED"));
    }
}
