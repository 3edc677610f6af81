//! `koboshi explain` of what agents meet every day: memory, ports, disks, git and npm. Each has its own sentence and its own next step, in
//! both languages, and not those of its whole category.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod common;

use common::{json, run_with};
use serde_json::Value;

/// The fault of a text.
fn fault(text: &str, lang: &str) -> Value {
    let args = ["explain", "--format", "json", "--now", "2026-11-15T09:00:00Z", "--lang", lang];
    json(&run_with(&args, &[], text))["fault"].clone()
}

/// What a program printed, the rule that reads it, and what the next step must name in both languages.
const TABLE: &[(&str, &str, &str)] = &[
    (
        "Error: listen EADDRINUSE: address already in use :::3000\n    at Server.setupListenHandle [as _listen2] (node:net:1463:16)\n",
        "tool.resource.port",
        "`ss -ltnp`",
    ),
    ("OSError: [Errno 98] Address already in use\n", "tool.resource.port", "`ss -ltnp`"),
    (
        "docker: Error response from daemon: Bind for 0.0.0.0:8080 failed: port is already allocated.\n",
        "tool.resource.port",
        "`ss -ltnp`",
    ),
    (
        "Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n    x = [0] * 10**12\nMemoryError\n",
        "process.memory",
        "",
    ),
    (
        "<--- Last few GCs --->\n\nFATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory\n",
        "process.memory.node",
        "--max-old-space-size",
    ),
    (
        "Exception in thread \"main\" java.lang.OutOfMemoryError: Java heap space\n",
        "process.memory.java",
        "-Xmx",
    ),
    (
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 8.00 GiB total capacity)\n",
        "process.memory.gpu",
        "`nvidia-smi`",
    ),
    (
        "[12345.6] Out of memory: Killed process 4242 (node) total-vm:12000kB\n",
        "process.memory.killed",
        "journalctl -k",
    ),
    (
        "npm error code ENOSPC\nnpm error nospc ENOSPC: no space left on device, write\n",
        "tool.resource.disk",
        "`df -h`",
    ),
    (
        "Error: ENOSPC: System limit for number of file watchers reached, watch '/home/u/app'\n",
        "tool.resource.files",
        "max_user_watches",
    ),
    ("OSError: [Errno 24] Too many open files: 'a.txt'\n", "tool.resource.files", "ulimit -n"),
    (
        "fatal: Unable to create '/home/u/p/.git/index.lock': File exists.\n\nAnother git process seems to be running in this repository, e.g.\nan editor opened by 'git commit'.\n",
        "tool.git.lock",
        ".git/index.lock",
    ),
    (
        "To github.com:a/b.git\n ! [rejected]        main -> main (non-fast-forward)\nerror: failed to push some refs to 'github.com:a/b.git'\nhint: Updates were rejected because the tip of your current branch is behind\n",
        "tool.git.rejected",
        "`git pull --rebase`",
    ),
    (
        "remote: error: GH006: Protected branch update failed for refs/heads/main.\nTo github.com:a/b.git\n ! [remote rejected] main -> main (protected branch hook declined)\nerror: failed to push some refs to 'github.com:a/b.git'\n",
        "tool.git.hook",
        "`remote:`",
    ),
    (
        "Auto-merging src/a.rs\nCONFLICT (content): Merge conflict in src/a.rs\nAutomatic merge failed; fix conflicts and then commit the result.\n",
        "tool.git.conflict",
        "`git add`",
    ),
    (
        "error: Your local changes to the following files would be overwritten by checkout:\n\tsrc/a.rs\nPlease commit your changes or stash them before you switch branches.\nAborting\n",
        "tool.git.local_changes",
        "`git stash -u`",
    ),
    (
        "fatal: not a git repository (or any of the parent directories): .git\n",
        "tool.git.no_repository",
        "`git init`",
    ),
    ("fatal: refusing to merge unrelated histories\n", "tool.git.diverged", "--allow-unrelated-histories"),
    (
        "error: pathspec 'feature' did not match any file(s) known to git\n",
        "tool.git.path",
        "`git branch -a`",
    ),
    (
        "git@github.com: Permission denied (publickey).\nfatal: Could not read from remote repository.\n\nPlease make sure you have the correct access rights\nand the repository exists.\n",
        "tool.git.public_key",
        "`ssh-add`",
    ),
    ("fatal: detected dubious ownership in repository at '/srv/app'\n", "tool.git.owner", "safe.directory"),
    (
        "Author identity unknown\n\n*** Please tell me who you are.\n\nfatal: unable to auto-detect email address (got 'root@x.(none)')\n",
        "tool.git.identity",
        "user.email",
    ),
    (
        "npm error code EACCES\nnpm error syscall mkdir\nnpm error path /usr/lib/node_modules/x\nnpm error Error: EACCES: permission denied, mkdir '/usr/lib/node_modules/x'\n",
        "tool.npm.permission",
        "npm config set prefix",
    ),
    (
        "npm error code ENOENT\nnpm error syscall open\nnpm error enoent Could not read package.json: Error: ENOENT: no such file or directory, open '/home/u/package.json'\n",
        "tool.npm.no_package",
        "`npm init -y`",
    ),
    (
        "npm error Missing script: \"buidl\"\nnpm error\nnpm error Did you mean this?\nnpm error   npm run build # run the \"build\" package script\n",
        "tool.npm.script",
        "`npm run`",
    ),
    (
        "npm error code E404\nnpm error 404 Not Found - GET https://registry.example/nosuch - Not found\nnpm error 404  'nosuch@*' is not in this registry.\n",
        "tool.npm.not_found",
        "`npm login`",
    ),
    (
        "npm error code EINTEGRITY\nnpm error sha512-abc integrity checksum failed when using sha512: wanted sha512-abc but got sha512-def. (123 bytes)\n",
        "tool.npm.integrity",
        "npm cache clean",
    ),
    (
        "npm error `npm ci` can only install packages when your package.json and package-lock.json or npm-shrinkwrap.json are in sync. Please update your lock file with `npm install` before continuing.\n",
        "tool.npm.lock",
        "`npm install`",
    ),
    (
        "fatal: Unable to create '/home/u/p/.git/refs/heads/main.lock': File exists.\n",
        "tool.git.lock",
        ".git/index.lock",
    ),
    ("fatal: a branch named 'x' already exists\n", "tool.git.taken", "`git switch BRANCH`"),
    (
        "npm error code ETARGET\nnpm error notarget No matching version found for x@99.\n",
        "tool.npm.no_version",
        "npm view NAME versions",
    ),
    (
        "ERROR: Could not find a version that satisfies the requirement foo==9 (from versions: 1.0)\nERROR: No matching distribution found for foo==9\n",
        "tool.pip.not_found",
        "pip index versions",
    ),
    (
        "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 1234 (apt)\nE: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), is another process using it?\n",
        "tool.apt.lock",
        "ps -C apt",
    ),
    (
        "npm warn deprecated foo\nnpm error code 1\nnpm error path /app\nnpm error command failed\nnpm error command sh -c node-gyp rebuild\n",
        "tool.npm.failed",
        "",
    ),
    (
        "Host key verification failed.\nfatal: Could not read from remote repository.\n",
        "tool.ssh.host_key",
        "ssh-keyscan",
    ),
    ("Error: Error acquiring the state lock\n", "tool.lock", ""),
    ("sqlite3.OperationalError: database is locked\n", "tool.lock", ""),
    ("Error: Process exited with code 137\n", "tool.resource.killed", "journalctl -k"),
];

#[test]
fn what_agents_meet_every_day_has_its_own_sentence() {
    let whole = |text: &str| ["The tool reported", "ツールがエラーを"].iter().any(|one| text.contains(one));
    let mut wrong = Vec::new();
    for (text, rule, step) in TABLE {
        let (en, ja) = (fault(text, "en"), fault(text, "ja"));
        let is_right = en["evidence"]["rule"] == *rule
            && [&en, &ja].iter().all(|fault| {
                let next = fault["suggestion"].as_str().unwrap_or_default();
                next.contains(step) && !whole(fault["message"].as_str().unwrap_or_default())
            });
        if !is_right {
            wrong.push(format!("{rule}: {}\n{}\n{}\n", en["evidence"], en["suggestion"], ja["suggestion"]));
        }
        assert_ne!(en["message"], ja["message"], "{rule}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The line that says why is shown, and not the last one that a program prints.
#[test]
fn the_line_that_says_why_is_shown() {
    let script = "npm error Missing script: \"buidl\"\nnpm error\nnpm error Did you mean this?\nnpm error   npm run build # run the \"build\" package script\n";
    let fault = fault(script, "en");
    assert_eq!(fault["evidence"]["line"], 1, "{fault}");
}

/// The steps of a category fit all of its causes, and a known cause only by chance.
#[test]
fn a_known_cause_has_no_steps_of_its_category() {
    let port = fault("OSError: [Errno 98] Address already in use\n", "en");
    assert_eq!(port["further_steps"], Value::Array(Vec::new()), "{port}");
}

/// A window's name does not make its reset one that has passed.
#[test]
fn a_reset_at_an_hour_is_the_next_such_hour() {
    for (text, seconds) in [
        ("5-hour limit reached ∙ resets 5:10pm\n", 29_400.0),
        ("You've hit your session limit · resets 5:10pm (UTC)\n", 29_400.0),
        ("[2026-11-15T08:59:00Z] You've hit your session limit · resets 5:10pm\n", 29_400.0),
    ] {
        let fault = fault(text, "en");
        assert_eq!(fault["wait"]["seconds"], seconds, "{text}: {fault}");
    }
    let old = fault("[2026-11-14T16:00:00Z] You've hit your session limit · resets 5:10pm\n", "en");
    assert_eq!(old["wait"]["seconds"], 0.0, "its own time says that it is over: {old}");
}

/// A part of a second counts as a whole one, so that no wait is shown too short.
#[test]
fn a_wait_is_never_shown_too_short() {
    let text = "{\"error\":{\"message\":\"Rate limit reached. Please try again in 1.7s.\",\"type\":\"rate_limit_error\"}}";
    let said =
        run_with(&["explain", "--status", "429", "--now", "2026-11-15T09:00:00Z", "--lang", "en"], &[], text);
    assert!(said.text.contains("(2s left)"), "{}", said.text);
}
