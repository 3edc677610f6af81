"""What is measured while nothing fails: throughput, latency, streams, memory, start, open streams.

A figure of a gateway is taken beside the same figure without it, one right after the other, since other work on the machine moves
both. Processor time is that of the gateway and all that it started.
"""
import json
import os
import pathlib
import subprocess
import time

from . import machine as here
from .dialects import CHAT
from .peers import KEY

LUA = pathlib.Path(__file__).resolve().parent / "post.lua"
CONNECTIONS = 64
BURST = 8
WARM = 1  # seconds before the measure; processor time counts from their beginning


class Direct:
    """No gateway at all."""

    name, headers = "direct", []

    def __init__(self, mock, dialect=CHAT, prefix=""):
        self.base, self.process, self.dialect, self.prefix = mock.base, mock.process, dialect, prefix

    def pids(self):
        return [self.process.pid]


class Measure:
    def __init__(self, mock, load, args):
        self.mock, self.load_program, self.args = mock, load, args

    def command(self, target, mode, model, *words, stream=False):
        """The words that start a load."""
        dialect, model = target.dialect, target.prefix + model
        return [str(word) for word in (
            self.load_program, mode, "--url", dialect.url(target.base, model, stream), "--key", KEY, "--dialect", dialect.name,
            "--body", dialect.request(model, stream), *(f"--header={line}" for line in target.headers), *(["--stream"] if stream else []), *words)]

    def load(self, target, mode, model, *words, stream=False, patience=300):
        command = self.command(target, mode, model, *words, stream=stream)
        done = subprocess.run(command, capture_output=True, text=True, timeout=patience)
        if done.returncode:
            raise RuntimeError(f"load: {done.stderr.strip()[-300:]}")
        return json.loads(done.stdout)

    def wrk(self, target, seconds):
        """Runs wrk, and tells the most memory that the target had meanwhile."""
        dialect, model = target.dialect, target.prefix + "ok"
        environment = {**os.environ, "BODY": dialect.request(model), "KEY": KEY, "HEADERS": "\n".join(target.headers)}
        command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "--timeout", "30s", "-s", str(LUA), dialect.url(target.base, model)]
        pids, most = target.pids(), 0
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            try:
                while process.poll() is None:
                    most = max(most, here.resident(pids))
                    time.sleep(0.2)
            finally:
                process.kill()
            told = process.stdout.read()
        for line in told.splitlines():
            if line.startswith("FIGURES "):
                return json.loads(line.removeprefix("FIGURES ")), most
        raise RuntimeError(f"wrk: {told[-300:]}")

    def throughput(self, target):
        self.wrk(target, self.args.warm)
        pids = target.pids()
        before, mock_before = here.cpu_seconds(pids), here.cpu_seconds([self.mock.process.pid])
        figures, most = self.wrk(target, self.args.seconds)
        spent, mock_spent = here.cpu_seconds(pids) - before, here.cpu_seconds([self.mock.process.pid]) - mock_before
        good = max(1, figures["requests"] - figures["bad"])
        return {"rate": good / figures["seconds"], "cpu_us": spent / good * 1e6, "mock_cpu_us": mock_spent / good * 1e6,
                "p50_us": figures["p50_us"], "p99_us": figures["p99_us"], "bad": figures["bad"], "resident": most}

    def beside(self, target, mode, model, *words, stream=False):
        """The same without and with the gateway, and what the gateway spent on it."""
        without = self.load(Direct(self.mock, target.dialect, target.prefix), mode, model, *words, stream=stream)
        pids = target.pids()
        before = here.cpu_seconds(pids)
        through = self.load(target, mode, model, *words, stream=stream)
        return {"direct": without, "through": through, "cpu": here.cpu_seconds(pids) - before}

    def latency(self, target, rate, waits=(0, 60)):
        told = {"rate": rate}
        for wait in waits:
            run = self.beside(target, "rate", f"wait{wait}" if wait else "ok", "--rate", rate, "--seconds", self.args.latency_seconds, "--warm", WARM)
            run["cpu_us"] = run["cpu"] / max(1, run["through"]["requests"] + rate * WARM) * 1e6
            told[f"wait{wait}"] = run
        return told

    def streams(self, target, rate):
        seconds = self.args.latency_seconds
        paced = self.beside(target, "rate", "stamp-chunks200-gap5", "--rate", rate, "--seconds", seconds, "--warm", WARM, stream=True)
        paced["cpu_us"] = paced["cpu"] / max(1, paced["through"]["pieces"] + 200 * rate * WARM) * 1e6
        burst = self.beside(target, "loop", "stamp-chunks200", "--connections", BURST, "--seconds", seconds, stream=True)
        burst["cpu_us"] = burst["cpu"] / max(1, burst["through"]["pieces"]) * 1e6
        return {"rate": rate, "paced": paced, "burst": burst}

    def visit(self, machine, gateway, parts):
        """One gateway, started afresh."""
        target = gateway.start(machine, self.mock)
        told = {"cold": [target.cold]}
        try:
            time.sleep(1)
            told["resident_idle"] = here.resident(target.pids())
            if "throughput" in parts:
                told["throughput"] = self.throughput(target)
            if "latency" in parts:
                told["latency"] = self.latency(target, gateway.rate)
            if "streams" in parts:
                told["streams"] = self.streams(target, gateway.stream_rate)
            told["resident_end"] = here.resident(target.pids())
        finally:
            machine.stop(target.process)
        # One start says little; who is slow to start says enough.
        for _ in range(4 if "cold" in parts and target.cold < 1 else 0):
            again = gateway.start(machine, self.mock)
            machine.stop(again.process)
            told["cold"].append(again.cold)
        return told

    def open_streams(self, machine, gateway):
        """Streams of the simulated provider that say one word and then nothing."""
        target = gateway.start(machine, self.mock, "open")
        command = self.command(target, "hold", "sim/stall?after=2", "--streams", self.args.streams, stream=True)
        try:
            time.sleep(1)
            before = here.resident(target.pids())
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
                try:
                    told = json.loads(holder.stdout.readline() or "{}")
                    time.sleep(3)
                    after = here.resident(target.pids())
                    holder.stdin.close()
                    told["open_later"] = json.loads(holder.stdout.readline() or "{}").get("open")
                finally:
                    holder.kill()
            return {**told, "asked": self.args.streams, "before": before, "after": after,
                    "bytes_each": (after - before) / max(1, told.get("begun", 0))}
        finally:
            machine.stop(target.process)
