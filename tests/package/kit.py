"""What the tests of the packages share: a report of checks, commands, and a client that asks a gateway."""
import contextlib
import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

DEADLINE = 60
failed = []


def step(text):
    print(f"\n-- {text}", flush=True)


def check(name, good, more=""):
    """Says what was found, and remembers what was wrong."""
    print(f"{'ok' if good else 'WRONG':5} {name}", flush=True)
    if not good:
        failed.append(name)
        print("      " + str(more).strip().replace("\n", "\n      "), flush=True)
    return good


def left_out(name, why):
    print(f"----  {name}: left out, because {why}", flush=True)


def run(*command, timeout=600, **more):
    """Runs a command to its end; its output is kept as text."""
    words = [str(word) for word in command]
    return subprocess.run(words, capture_output=True, text=True, timeout=timeout, **more)


def must(*command, **more):
    """The same, and nothing goes on if it fails: what follows builds on it."""
    ran = run(*command, **more)
    if ran.returncode:
        sys.exit(f"{' '.join(str(word) for word in command)} failed with {ran.returncode}:\n{ran.stdout}\n{ran.stderr}")
    return ran.stdout


def until(question):
    """Asks until the answer is true or the time is over; gives the last answer."""
    end = time.monotonic() + DEADLINE
    while True:
        answer = question()
        if answer or time.monotonic() > end:
            return answer
        time.sleep(0.1)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def ask(port, path, body=None, headers=()):
    """Status and text of an answer; status 0 without an answer."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data=body and json.dumps(body).encode(), headers={"content-type": "application/json", **dict(headers)})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except (OSError, urllib.error.URLError):
        return 0, ""


def chat(port, model):
    """The words that a model answers; empty where there are none."""
    status, text = ask(port, "/v1/chat/completions", {"model": model, "messages": [{"role": "user", "content": "hello"}]})
    with contextlib.suppress(ValueError, KeyError, IndexError):
        return json.loads(text)["choices"][0]["message"]["content"] if status == 200 else ""
    return ""


def is_healthy(port):
    return until(lambda: ask(port, "/health")[0] == 200)


def limits():
    """Options for podman: its own limits are above what some machines permit, and so may be the hard ones of this process."""
    return ["--ulimit", "nofile=4096:4096", "--ulimit", "nproc=4096:4096"]


class Podman:
    """Podman with a storage of its own, which goes with the folder. `None` in `runtime` where no runtime works here."""

    def __init__(self, folder):
        self.base = ["podman", "--root", folder / "podman", "--runroot", folder / "podman-run", "--storage-driver", "vfs", "--cgroup-manager", "cgroupfs"]
        self.runtime, self.why = None, "podman is not installed"

    def find_runtime(self, *what):
        """Tries what may run here with a command that must succeed."""
        for runtime in ("crun", "runc"):
            ran = run(*self.base, "--runtime", runtime, "run", "--rm", "--network", "host", *limits(), *what)
            if ran.returncode == 0:
                self.runtime = runtime
                return True
            self.why = ran.stderr.strip().splitlines()[-1] if ran.stderr.strip() else f"podman ended with {ran.returncode}"
        return False

    def __call__(self, *words, **more):
        return run(*self.base, *(["--runtime", self.runtime] if self.runtime else []), *words, **more)
