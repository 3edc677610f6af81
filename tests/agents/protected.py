"""Real coding agents under `koboshi run` and `koboshi up`: with a primary that falls they finish, and at the wall of their account they are stopped once, rest, and go on.

Usage: protected.py KOBOSHI NODE_MODULES [AGENT...]   NODE_MODULES is where package.json of this folder was installed.
"""
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "sdk"))
from gateway import Gateway  # noqa: E402
from table import upstream  # noqa: E402

from clis import CLIS  # noqa: E402
from process import MARK, end, marked  # noqa: E402

DIALECTS = {"claude": "messages", "codex": "responses", "gemini": "gemini"}
# The first call is answered, the second one finds the quota used up, all others are answered again: so falls the seed.
WALL = "quota?retry_after=900&p=0.3&seed=8"
FALLS = {"overloaded, one request of two": "overloaded?p=0.5", "down": "fail-503", "a cut in a tool call": "cut-tool?p=0.5"}
DEADLINE = 120


def prompt(work):
    """Two commands: the first must have been run once, whatever happens between them."""
    return f"Please do this:\nkoboshi: run `echo once >> {work}/written.txt`, then run `cp {work}/written.txt {work}/copy.txt`"


def config(dialect, chain, folder):
    providers = {dialect: upstream(dialect) | {"account": "wall"}, "spare": upstream(dialect)}
    return {"store": {"path": str(folder / "koboshi.db")}, "providers": providers, "routes": {"task": chain}, "retry": {"initial_delay": "10ms", "max_delay": "50ms"},
            "breaker": {"consecutive_failures": "off"}}


def pointed_by_us(given):
    """The same variables without an address: only the one that Koboshi gives leads anywhere."""
    return {name: value for name, value in given.items() if not name.endswith("_BASE_URL")} | {"OPENAI_API_KEY": "any-key"}


class Run:
    """One agent under `koboshi run`, in a home of its own, with a gateway that shares its store."""
    more = {}
    deadline = DEADLINE

    def __init__(self, koboshi, cli, chain, folder):
        self.koboshi, self.cli, self.folder = koboshi, cli, folder
        self.work = folder / "work"
        self.work.mkdir()
        self.gateway = Gateway(koboshi, config(DIALECTS[cli.name], chain, folder) | self.more)

    def environment(self, gateway):
        return self.cli.prepare(self.folder, gateway.url, "task", "any-key"), ["--gateway", "off"]

    def start(self):
        gateway = self.gateway.__enter__()
        store = str(self.folder / "koboshi.db")
        own, pointing = self.environment(gateway)
        self.mark = f"protected-{os.getpid()}-{time.monotonic_ns()}"
        given = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TERM": "xterm-256color", "HOME": str(self.folder), "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1",
                 "TMPDIR": str(self.folder), MARK: self.mark, **own}
        command = [self.koboshi, "run", "--account", "wall", "--patience", "1h", "--tries", "3", "--store", store, *pointing, "--", *self.cli.command(prompt(self.work))]
        self.printed = self.folder / "printed"
        with self.printed.open("w") as out:
            self.process = subprocess.Popen(command, cwd=self.work, env=given, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
        return self

    def stop(self):
        end(self.mark)
        self.process.wait(timeout=20)
        self.gateway.__exit__()

    def told(self):
        return self.printed.read_text(errors="replace")

    def count(self):
        file = self.work / "written.txt"
        return len(file.read_text().splitlines()) if file.exists() else 0

    def ask(self, *args):
        given = {**os.environ, "LANG": "C.UTF-8"}
        out = subprocess.run([self.koboshi, *args, "--store", str(self.folder / "koboshi.db")], capture_output=True, text=True, env=given)
        return out.stdout

    def rests(self):
        rows = json.loads(self.ask("status", "--format", "json") or "{}").get("rows", [])
        return [row["key"] for row in rows]

    def until(self, what, look):
        deadline = time.monotonic() + DEADLINE
        while not (seen := look()):
            if time.monotonic() > deadline:
                return f"it did not come: {what}"
            if self.process.poll() is not None and not look():
                return f"ended with {self.process.returncode} before: {what}"
            time.sleep(0.2)
        return None if seen else what

    def waits(self):
        return "account:wall" in self.told()

    def finished(self):
        try:
            code = self.process.wait(timeout=self.deadline)
        except subprocess.TimeoutExpired:
            return f"not done after {self.deadline} s"
        copy = self.work / "copy.txt"
        if code != 0:
            return f"exit {code}"
        if self.count() != 1:
            return f"the first command was run {self.count()} times"
        if not copy.exists():
            return "the second command was not run"
        if left := marked(self.mark):
            return f"{len(left)} processes are left"
        self.starts = len(self.ask("journal", "--kind", "started", "--format", "json").splitlines())
        return None


class Pointed(Run):
    """The same, pointed at the gateway of its config by `koboshi run` itself."""

    def __init__(self, koboshi, cli, chain, folder):
        self.more = {"routes": {"*": chain}}
        super().__init__(koboshi, cli, chain, folder)

    def environment(self, gateway):
        own = pointed_by_us(self.cli.prepare(self.folder, "http://127.0.0.1:9", "task", "any-key"))
        file = self.folder / "own.yaml"
        file.write_text(json.dumps(gateway.config | {"serve": {"listen": gateway.url.removeprefix("http://")}}))
        return own, ["--config", str(file)]


class Brief(Run):
    """The same with a wall that ends by itself: nobody resumes it. It is told as a minute of the clock, and a minute more is waited."""
    deadline = 200


class Kept(Run):
    """The same agent of a config, under `koboshi up`, which points it at its own gateway."""

    def __init__(self, koboshi, cli, chain, folder):
        self.koboshi, self.cli, self.folder = koboshi, cli, folder
        self.work = folder / "work"
        self.work.mkdir()
        self.config = config(DIALECTS[cli.name], chain, folder)

    def start(self):
        self.mark = f"kept-{os.getpid()}-{time.monotonic_ns()}"
        # Nothing listens there: only the address that the supervisor gives leads anywhere.
        given = self.cli.prepare(self.folder, "http://127.0.0.1:9", "task", "any-key")
        given = pointed_by_us(given) | {"HOME": str(self.folder), "TMPDIR": str(self.folder), "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1", MARK: self.mark}
        agent = {"command": self.cli.command(prompt(self.work)), "dir": str(self.work), "account": "wall", "when": "once", "survives": False,
                 "env": [f"{name}={value}" for name, value in given.items()]}
        file = self.folder / "koboshi.yaml"
        # Its work takes seconds: a short run is a success here.
        file.write_text(json.dumps(self.config | {"cooldown": {"min_run": "0s"}, "routes": {"*": self.config["routes"]["task"]}, "agents": {"worker": agent}}))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.url = f"http://127.0.0.1:{probe.getsockname()[1]}"
        self.printed = self.folder / "printed"
        with self.printed.open("w") as out:
            command = [self.koboshi, "up", "--config", file, "--listen", self.url.removeprefix("http://")]
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
        return self

    def stop(self):
        for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):
            if self.process.poll() is None:
                self.process.send_signal(number)
                try:
                    self.process.wait(timeout=10)
                except subprocess.TimeoutExpired:
                    continue
        end(self.mark)

    def told(self):
        return self.ask("logs", "worker")[-2000:] + self.printed.read_text(errors="replace")

    def agent(self):
        rows = json.loads(self.ask("status", "--format", "json") or "{}").get("agents") or [{}]
        return rows[0]

    def waits(self):
        # The account rests while the agent still goes to its end.
        return self.agent().get("state") == "held"

    def finished(self):
        last = lambda: (self.agent().get("last") or {}).get("outcome")
        if trouble := self.until("it succeeds", lambda: last() == "succeeded"):
            return f"{trouble}: {last()}"
        if self.count() != 1:
            return f"the first command was run {self.count()} times"
        if not (self.work / "copy.txt").exists():
            return "the second command was not run"
        if left := marked(self.mark):
            return f"{len(left)} processes are left"
        counted = subprocess.run(["curl", "-s", f"{self.url}/metrics"], capture_output=True, text=True).stdout
        if 'koboshi_answers_total{kind="whole"}' not in counted:
            return "it did not ask through the gateway"
        spent = self.ask("spend", "--by", "agent")
        if "worker/default" not in spent:
            return f"what it cost is not its own: {spent}"
        self.starts = int(next(line for line in counted.splitlines() if line.startswith("koboshi_agent_starts_total")).split()[-1])
        return None


def once(run):
    """A fall is no reason to start it again."""
    trouble = run.finished()
    return trouble or (f"{run.starts} starts" if run.starts != 1 else None)


def at_the_wall(run):
    trouble = run.until("the account rests", lambda: "account:wall" in run.rests())
    trouble = trouble or run.until("it waits", run.waits)
    if trouble:
        return trouble
    if run.count() != 1:
        return f"the first command was run {run.count()} times before the wall"
    # Nothing of the agent is there while it rests.
    names = [pathlib.Path(f"/proc/{pid}/comm").read_text().strip() for pid in marked(run.mark)]
    # The kernel cuts a name after 15 bytes.
    if [name for name in names if name != pathlib.Path(run.koboshi).name[:15]]:
        return f"while it rests there are {names}"
    if not isinstance(run, Brief):
        for key in run.rests():
            run.ask("resume", key)
    trouble = run.finished()
    return trouble or (f"{run.starts} starts" if run.starts != 2 else None)


def main():
    koboshi, modules, *names = sys.argv[1:]
    koboshi = str(pathlib.Path(koboshi).resolve())
    os.environ["PATH"] = f"{pathlib.Path(modules).resolve()}/node_modules/.bin:{os.environ['PATH']}"
    wrong = 0
    for cli in (CLIS[name] for name in names or CLIS):
        dialect = DIALECTS[cli.name]
        falls = {f"the primary falls: {name}": ([f"{dialect}/{fall}", "spare/ok"], once) for name, fall in FALLS.items()}
        falls["at the wall of its account"] = ([f"{dialect}/{WALL}"], at_the_wall)
        cases = {f"{how}: {what}": (way, *case) for how, way in (("koboshi run", Run), ("koboshi up", Kept)) for what, case in falls.items()}
        cases["koboshi run --gateway auto: the primary is down"] = (Pointed, [f"{dialect}/fail-503", "spare/ok"], once)
        if cli.name == "codex":
            # A wait of a minute is short for the others, which then wait themselves.
            cases["koboshi run: at the wall of its account, which ends by time"] = (Brief, [f"{dialect}/{WALL.replace('900', '65')}"], at_the_wall)
        for what, (way, chain, check) in cases.items():
            with tempfile.TemporaryDirectory(prefix="agent-", dir=os.environ.get("KOBOSHI_AGENT_HOMES"), ignore_cleanup_errors=True) as folder:
                begun = time.monotonic()
                run = way(koboshi, cli, chain, pathlib.Path(folder)).start()
                try:
                    trouble = check(run)
                finally:
                    run.stop()
                print(f"{'WRONG' if trouble else 'ok':5} {cli.name}: {what} ({time.monotonic() - begun:.1f} s){': ' + trouble if trouble else ''}", flush=True)
                if trouble:
                    wrong += 1
                    print(f"  printed at the end:\n{run.told()[-2500:]}", flush=True)
    print(f"{wrong} cases of protected agents wrong" if wrong else "every protected agent finished, and did its work once")
    sys.exit(1 if wrong else 0)


main()
