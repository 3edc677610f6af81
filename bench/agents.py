#!/usr/bin/env python3
"""What the supervisor costs, and what it saves, on this machine.

    bench/agents.py                                    with a release build; the others are installed from PyPI and npm
    bench/agents.py --koboshi BIN --parts idle,start   only these
    bench/agents.py --parts others --seconds 600

start   from "may start" to the first instruction of the agent
idle    1,000 agents that run and say nothing: processor and memory of the supervisor, private memory of each shim
output  an agent that writes as fast as it can, beside the same one that writes into `cat > file`
others  an agent that dies of its quota, kept by Koboshi, supervisord and pm2: how often it is started while that cannot help
"""
import argparse
import contextlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from rig import machine as here, peers  # noqa: E402
from rig.machine import say  # noqa: E402

GOALS = {"start median ms": 20, "supervisor % of a core": 1, "supervisor MiB": 60, "shim private MiB": 2, "koboshi wasted starts": 0}
AT_LEAST = {"output ratio": 0.3}
QUICK = {"max_starts": 1000000, "error": {"initial": "10ms", "max": "10ms", "park_after": "off"}}
LINE = "a line of an agent that never stops talking, with words like those of a log"
# Says how long it took, and how long the longest of its writes was held up.
WRITER = """
import os, sys, time
total, told = int(sys.argv[1]), sys.argv[2]
block = (sys.argv[3] + "\\n").encode() * (65536 // (len(sys.argv[3]) + 1))
begin, longest, written = time.monotonic(), 0, 0
while written < total:
    before = time.monotonic()
    written += os.write(1, block)
    longest = max(longest, time.monotonic() - before)
took = time.monotonic() - begin
open(told, "w").write(f"{written} {took} {longest}")
"""
QUOTA = "echo x >> {notes}; sleep 2; echo 'TerminalQuotaError: Your quota will reset after 22m55s.' >&2; exit 1"


class Supervisor:
    """Koboshi with these agents, in a folder of its own."""

    def __init__(self, machine, program, name, agents, cooldown=None):
        self.program, self.folder = program, machine.scratch(name)
        config = {"agents": agents, "cooldown": cooldown or {}}
        (self.folder / "koboshi.yaml").write_text(json.dumps(config))
        self.store = self.folder / "koboshi.db"
        command = [program, "supervise", "--config", self.folder / "koboshi.yaml", "--store", self.store]
        self.process = machine.start(command, self.folder)

    def runs(self):
        return self.folder.glob("runs/agents/*/*/*")

    def stop(self, seconds=60):
        self.process.terminate()
        self.process.wait(seconds)


def until(what, look, seconds=120):
    deadline = time.monotonic() + seconds
    while not look():
        if time.monotonic() > deadline:
            sys.exit(f"it did not come: {what}")
        time.sleep(0.1)


def start(machine, program, _):
    """The name of a run's folder is the time at which it was decided; `date` is the agent."""
    agents = {f"a{n}": {"command": ["date", "+%s%N"], "gateway": False, "survives": False} for n in range(5)}
    kept = Supervisor(machine, program, "start", agents, QUICK)
    until("a hundred runs", lambda: sum(1 for run in kept.runs() if (run / "judged").exists()) >= 90)
    kept.stop()
    took = []
    for run in kept.runs():
        log = run / "log"
        if log.exists() and log.read_text().strip().isdigit():
            took.append((int(log.read_text()) - int(run.name)) / 1e6)
    bare = []
    for _ in range(50):
        begin = time.time_ns()
        bare.append((int(subprocess.run(["date", "+%s%N"], capture_output=True).stdout) - begin) / 1e6)
    return {"start median ms": statistics.median(took), "start slowest ms": max(took), "starts": len(took),
            "the same without a supervisor, median ms": statistics.median(bare)}


def children(pid):
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                if int(here.fields(name)[1]) == pid:
                    found.append(int(name))
    return found


def private(pid):
    text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Private_")) / 1024


def idle(machine, program, _):
    count = 1000
    projects = [f"p{n}" for n in range(count)]
    agents = {"quiet": {"command": ["sleep", "100000"], "gateway": False, "survives": False, "projects": projects}}
    kept = Supervisor(machine, program, "idle", agents)
    pid = kept.process.pid
    until("all run", lambda: sum(1 for run in kept.runs() if (run / "shim.json").exists()) == count, 600)
    time.sleep(5)
    seconds, before = 30, here.cpu_seconds([pid])
    time.sleep(seconds)
    used = here.cpu_seconds([pid]) - before
    own = children(pid)
    told = {"supervised": len(own), "supervisor % of a core": 100 * used / seconds, "supervisor MiB": here.resident([pid]) / (1 << 20),
            "shim private MiB": statistics.median(private(shim) for shim in own)}
    begin = time.monotonic()
    kept.stop(300)
    return told | {"all stopped in seconds": time.monotonic() - begin}


def output(machine, program, _):
    total, folder = 2 << 30, machine.scratch("writer")
    (folder / "writer.py").write_text(WRITER)
    command = [sys.executable, str(folder / "writer.py"), str(total)]

    def told(name):
        until(name, lambda: (folder / name).exists() and (folder / name).read_text())
        written, took, longest = (float(word) for word in (folder / name).read_text().split())
        return written / took / 1e6, longest

    with open(folder / "file", "wb") as file:
        cat = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=file)
        subprocess.run([*command, folder / "cat", LINE], stdout=cat.stdin, check=True)
        cat.stdin.close()
        cat.wait()
    (folder / "file").unlink()
    agents = {"loud": {"command": [*command, str(folder / "kept"), LINE], "gateway": False, "when": "once"}}
    kept = Supervisor(machine, program, "output", agents)
    speed, longest = told("kept")
    until("its end", lambda: any((run / "judged").exists() for run in kept.runs()))
    end = json.loads(next(kept.runs()).joinpath("judged").read_text())
    kept.stop()
    beside, _ = told("cat")
    return {"output MB a second": speed, "into cat MB a second": beside, "output ratio": speed / beside,
            "longest write ms": 1000 * longest, "bytes written": end["written"], "bytes left out of the log": end["dropped"]}


def others(machine, program, seconds):
    """Each keeps the same agent: it works for two seconds, then dies of a quota that comes back in 22 min 55 s."""
    folder = machine.scratch("others")
    notes = {name: folder / f"{name}.starts" for name in ("koboshi", "supervisord", "pm2")}
    script = {name: QUOTA.format(notes=path) for name, path in notes.items()}
    kept = Supervisor(machine, program, "koboshi-others", {"dry": {"command": ["sh", "-c", script["koboshi"]], "gateway": False, "account": "main"}})
    running = {"koboshi": kept.process}
    venv = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    subprocess.run([venv / "bin/pip", "install", "-q", "--disable-pip-version-check", "supervisor", "setuptools<81"], check=True)
    (folder / "agent.sh").write_text(script["supervisord"])
    (folder / "supervisord.conf").write_text(
        f"[supervisord]\nnodaemon=true\nlogfile={folder}/supervisord.log\npidfile={folder}/supervisord.pid\n"
        f"[program:dry]\ncommand=sh {folder}/agent.sh\nautorestart=true\n")
    running["supervisord"] = machine.start([venv / "bin/supervisord", "-c", folder / "supervisord.conf"], folder)
    if shutil.which("npm"):
        subprocess.run(["npm", "install", "--prefix", folder / "npm", "--no-audit", "--no-fund", "--loglevel=error", "pm2"], check=True)
        (folder / "pm2.sh").write_text(script["pm2"])
        command = [folder / "npm/node_modules/.bin/pm2-runtime", "start", folder / "pm2.sh", "--interpreter", "sh"]
        os.environ["PM2_HOME"] = str(folder / "pm2")
        running["pm2"] = machine.start(command, folder)
    begun = {name: time.monotonic() for name in running}
    counts = {}
    while len(counts) < len(running):
        time.sleep(1)
        for name in running:
            if name not in counts and time.monotonic() - begun[name] >= seconds:
                counts[name] = len(notes[name].read_text().splitlines())
    return {f"{name} wasted starts": count - 1 for name, count in counts.items()} | {"seconds": seconds}


PARTS = {"start": start, "idle": idle, "output": output, "others": others}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--koboshi", metavar="BIN", help="this program in place of a release build")
    parser.add_argument("--parts", default=",".join(PARTS), help="which parts, with commas between them")
    parser.add_argument("--seconds", type=int, default=600, help="length of `others`")
    args = parser.parse_args()
    here.raise_descriptors()
    koboshi = peers.Koboshi(args.koboshi)
    koboshi.install()
    missed = 0
    for name in args.parts.split(","):
        say(f"{name}, load of the machine {os.getloadavg()[0]:.1f}")
        with here.Machine(keep=False) as machine:
            told = PARTS[name](machine, koboshi.program, args.seconds)
        for what, value in told.items():
            goal = f"   goal: at most {GOALS[what]:g}" if what in GOALS else f"   goal: at least {AT_LEAST[what]:g}" if what in AT_LEAST else ""
            print(f"{what:40} {value if isinstance(value, int) else format(value, '.2f')}{goal}", flush=True)
            missed += (what in GOALS and value > GOALS[what]) or (what in AT_LEAST and value < AT_LEAST[what])
        print()
    sys.exit(f"{missed} goals missed" if missed else 0)


if __name__ == "__main__":
    main()
