"""Runs one program with a deadline and leaves nothing of it behind.

Agents run their tools in sessions of their own, out of reach of a kill of the group. So every process carries a mark in its environment, and what still carries
it afterwards is ended.
"""
import os
import pathlib
import signal
import subprocess
import time
import uuid

MARK = "KOBOSHI_AGENT_TEST"


class Ran:
    def __init__(self, code, out, seconds):
        self.code, self.out, self.seconds = code, out, seconds


def run(command, folder, given, deadline):
    """`code` is None where the deadline passed."""
    mark = uuid.uuid4().hex
    given = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TERM": "xterm-256color", "COLORTERM": "truecolor", "NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost",
             **given, MARK: mark}
    # Reports of errors and the like go away with the home.
    scratch = pathlib.Path(given["HOME"]) / "tmp"
    scratch.mkdir(exist_ok=True)
    given["TMPDIR"] = str(scratch)
    began = time.monotonic()
    printed = pathlib.Path(given["HOME"]) / f"printed-{mark}"
    with printed.open("w") as out:
        process = subprocess.Popen(command, cwd=folder, env=given, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        code = process.wait(timeout=deadline)
    except subprocess.TimeoutExpired:
        code = None
    seconds = time.monotonic() - began
    end(mark)
    process.wait(timeout=10)
    return Ran(code, printed.read_text(errors="replace"), seconds)


def end(mark):
    """Ends whatever carries the mark: politely, then not."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + 3
        while left := marked(mark):
            for pid in left:
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    pass
            if time.monotonic() > deadline:
                break
            time.sleep(0.1)


def marked(mark):
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                # What has ended and was not yet collected has no environment.
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found
