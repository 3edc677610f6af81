#!/usr/bin/env python3
"""Koboshi beside nginx, Portkey and LiteLLM, on this machine, in one run.

    bench/gateways.py                       everything that can be had here, three repeats
    bench/gateways.py --only nginx,koboshi --parts throughput,latency --out figures.json
    bench/gateways.py --report figures.json
    bench/gateways.py --quick               does it work? A minute, nginx and koboshi only

What the figures mean is in docs/measures.md. Progress goes to the standard error, tables to the standard output.
"""
import argparse
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from rig import dialects, faults, machine as here, peers, report  # noqa: E402
from rig.machine import say  # noqa: E402
from rig.measure import Direct, Measure  # noqa: E402

BENCH = pathlib.Path(__file__).resolve().parent
PARTS = ("throughput", "latency", "streams", "cold", "open", "dialects", "failover", "outage")
VISITS = {"throughput", "latency", "streams", "cold"}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="names with commas between them: nginx, koboshi, portkey, litellm")
    parser.add_argument("--parts", help=f"with commas between them: {', '.join(PARTS)}")
    parser.add_argument("--quick", action="store_true", help="nginx and koboshi, every part, as short as it can be")
    parser.add_argument("--koboshi", metavar="BIN", help="this program in place of building one")
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--seconds", type=int, help="length of a throughput run")
    parser.add_argument("--latency-seconds", type=float, help="length of a run at a fixed rate and of a stream run")
    parser.add_argument("--streams", type=int, help="open streams")
    parser.add_argument("--probes", type=int, help="requests for each way to fall; slow gateways get fewer")
    parser.add_argument("--outage-seconds", type=float)
    parser.add_argument("--outage-after", type=float, help="how long it goes on after the outage")
    parser.add_argument("--outage-rate", type=float, default=10)
    parser.add_argument("--outage-way", default="503", help="a status, hang, reset or cut")
    parser.add_argument("--out", metavar="FILE", help="all figures as JSON; written after every visit")
    parser.add_argument("--report", metavar="FILE", help="only the tables of an earlier run")
    parser.add_argument("--keep", action="store_true", help="keep the folder with logs and configs")
    args = parser.parse_args()
    usual = {"only": "nginx,koboshi,portkey,litellm", "repeats": 3, "seconds": 5, "latency_seconds": 5,
             "streams": 9000, "probes": 20, "outage_seconds": 60, "outage_after": 45}
    quick = {"only": "nginx,koboshi", "repeats": 1, "seconds": 1, "latency_seconds": 1,
             "streams": 500, "probes": 3, "outage_seconds": 3, "outage_after": 8}
    for name, value in (quick if args.quick else usual).items():
        if getattr(args, name) is None:
            setattr(args, name, value)
    args.warm = 1 if args.quick else 2
    args.parts = set(args.parts.split(",")) if args.parts else set(PARTS)
    if args.parts - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(args.parts - set(PARTS)))}")
    return args


def programs():
    say("building mock and load")
    if subprocess.run(["cargo", "build", "--release", "--locked", "--quiet", "--bin", "mock", "--bin", "load"], cwd=BENCH).returncode:
        sys.exit("mock and load do not build")
    folder = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", BENCH / "target")) / "release"
    return folder / "mock", folder / "load"


def gateways(args):
    known = {one.name: one for one in (peers.Nginx(), peers.Koboshi(args.koboshi), peers.Portkey(), peers.LiteLlm())}
    there, missing = [], {}
    for name in args.only.split(","):
        if name not in known:
            sys.exit(f"no such gateway: {name}")
        try:
            known[name].install()
            there.append(known[name])
        except (peers.Missing, OSError) as why:
            say(f"without {name}: {why}")
            missing[name] = str(why)
    return there, missing


def versions(there):
    told = {}
    for one in there:
        with contextlib.suppress(OSError, IndexError, KeyError, AttributeError):
            if one.name == "portkey":
                told[one.name] = json.loads((one.script.parent.parent / "package.json").read_text())["version"]
                continue
            command = [one.program, "--version"] if one.name != "nginx" else [here.which("nginx"), "-v"]
            if one.name == "litellm":
                command = [one.program.parent / "python", "-c", "import importlib.metadata as m; print(m.version('litellm'))"]
            done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
            told[one.name] = re.search(r"\d+(\.\d+)+", done.stdout + done.stderr)[0]
    return told


class Run:
    def __init__(self, args, machine, measure, there, told):
        self.args, self.machine, self.measure, self.there, self.told = args, machine, measure, there, told

    def save(self):
        if self.args.out:
            path = pathlib.Path(self.args.out)
            path.with_suffix(".part").write_text(json.dumps(self.told))
            path.with_suffix(".part").replace(path)

    def attempt(self, words, work, keep):
        """One piece of work; if it fails it is said, and the others go on."""
        say(words)
        try:
            keep(work())
        except (peers.Missing, RuntimeError, OSError, ValueError, KeyError, subprocess.SubprocessError) as why:
            self.told["failed"].append(f"{words}: {why}")
            say(f"  failed: {why}")
            if not isinstance(why, (peers.Missing, RuntimeError)):
                traceback.print_exc()
        self.save()

    def visits(self):
        args, parts = self.args, self.args.parts & VISITS
        if not parts:
            return
        targets = [None, *self.there]
        for repeat in range(args.repeats):
            for gateway in targets if repeat % 2 == 0 else targets[::-1]:
                name = gateway.name if gateway else "direct"
                if gateway is None and "throughput" not in parts:
                    continue
                work = ((lambda one=gateway: self.measure.visit(self.machine, one, parts)) if gateway else
                        (lambda: {"throughput": self.measure.throughput(Direct(self.measure.mock))}))
                visits = self.told["visits"].setdefault(name, [])
                self.attempt(f"[{repeat + 1}/{args.repeats}] {name}", work, lambda told: visits.append({"repeat": repeat, **told}))

    def open(self):
        for repeat in range(self.args.repeats):
            for gateway in self.there:
                if gateway.name == "koboshi":
                    self.attempt(f"[{repeat + 1}/{self.args.repeats}] {self.args.streams} open streams",
                                 lambda one=gateway: self.measure.open_streams(self.machine, one), self.told["open"].append)

    def dialects(self):
        able = [gateway for gateway in self.there if gateway.speaks]
        for repeat in range(self.args.repeats):
            self.attempt(f"[{repeat + 1}/{self.args.repeats}] dialects: {', '.join(one.name for one in able)}",
                         lambda: dialects.visit(self.measure, self.machine, able if repeat % 2 == 0 else able[::-1]),
                         lambda told: [self.told["dialects"].setdefault(name, []).append({"repeat": repeat, **rows}) for name, rows in told.items()])

    def faults(self):
        for gateway in self.there:
            if not gateway.falls_over:
                continue
            count = min(self.args.probes, gateway.probes)
            if "failover" in self.args.parts:
                self.attempt(f"{gateway.name}: fall-over", lambda: faults.failover(self.measure, self.machine, gateway, count),
                             lambda rows: self.told["failover"].update({gateway.name: rows}))
            for mood in gateway.moods if "outage" in self.args.parts else ():
                name = " ".join([gateway.name, mood]).strip()
                self.attempt(f"{name}: outage of {self.args.outage_seconds:g} s",
                             lambda: faults.outage(self.measure, self.machine, gateway, self.args, mood),
                             lambda rows: self.told["outage"].update({name: rows}))


def main():
    args = arguments()
    if args.report:
        report.tables(json.loads(pathlib.Path(args.report).read_text()))
        return
    # Ended in either way, everything that was started is ended too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(143))
    mock_program, load_program = programs()
    there, missing = gateways(args)
    if args.parts & {"throughput", "dialects"}:
        try:
            peers.apt("wrk", "wrk")
        except peers.Missing as why:
            for part in args.parts & {"throughput", "dialects"}:
                say(f"without {part}: {why}")
                missing[part] = str(why)
            args.parts -= {"throughput", "dialects"}
    descriptors = here.raise_descriptors()
    if "open" in args.parts and descriptors < args.streams + 500:
        say(f"only {descriptors} descriptors may be open: {args.streams} streams will not fit")
    told = {"about": {"cores": os.cpu_count(), "repeats": args.repeats, "versions": versions(there), "missing": missing},
            "visits": {}, "open": [], "dialects": {}, "failover": {}, "outage": {}, "failed": []}
    try:
        with here.Machine(args.keep) as machine:
            run = Run(args, machine, Measure(here.Mock(machine, mock_program), load_program, args), there, told)
            run.visits()
            if "open" in args.parts:
                run.open()
            if "dialects" in args.parts:
                run.dialects()
            run.faults()
    except KeyboardInterrupt:
        say("stopped")
        sys.exit(130)
    report.tables(told)
    wrong = [*told["failed"], *report.unwell(told), *(f"without {name}" for name in missing if args.quick)]
    for words in wrong:
        say(f"wrong: {words}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
