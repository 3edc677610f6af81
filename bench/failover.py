#!/usr/bin/env python3
"""Ordinary requests while the store of a fleet fails, on this machine.

    bench/failover.py                        two runs of both cases, with a release build
    bench/failover.py --koboshi BIN --runs 1 --seconds 5 --cases kill

Two gateways share a Redis that three Sentinels watch. One gateway gets 2,000 requests a second, which are measured twice: undisturbed, and
while the Redis is lost. `failover`: the server is killed, and the Sentinels let its replica lead. `kill`: a Redis without Sentinels is killed
and comes back empty after two seconds. All the while the other gateway gets twenty orders of an operator a second; in the end the store
must have all of them.
"""
import argparse
import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import threading
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from gateways import programs  # noqa: E402
from hostile import until  # noqa: E402
from rig import machine as here, peers  # noqa: E402
from rig.machine import say  # noqa: E402

RATE = 2000
GOALS = {"p99 ratio": 2, "disturbed failed": 0, "facts lost": 0}
BODY = '{"model":"ok","max_tokens":64,"messages":[{"role":"user","content":"question {i}"}]}'
CASES = ("failover", "kill")


def ask(port, *words):
    """What a Redis answers to one command, as text. A Sentinel does not close the connection: its answer ends with the silence after it."""
    told = b""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=0.5) as client:
        client.sendall((" ".join(map(str, words)) + "\r\nQUIT\r\n").encode())
        while piece := client.recv(65536):
            told += piece
    return told.decode(errors="replace")


class Store:
    """A Redis, and in the case of a failover its replica and their Sentinels."""

    def __init__(self, machine, case):
        self.machine, self.folder, self.case = machine, machine.scratch("redis"), case
        self.ports = [here.free_port(), here.free_port()]
        self.first = self.server(self.ports[0])
        if case == "kill":
            self.url, self.port = f"redis://127.0.0.1:{self.ports[0]}", self.ports[0]
            return
        self.server(self.ports[1], "--replicaof", "127.0.0.1", self.ports[0])
        until("the replica follows", lambda: "state=online" in ask(self.ports[0], "INFO", "replication"))
        self.sentinels = [here.free_port() for _ in range(3)]
        for port in self.sentinels:
            file = self.folder / f"sentinel-{port}.conf"
            file.write_text(f"port {port}\nbind 127.0.0.1\ndir {self.folder}\nsentinel monitor main 127.0.0.1 {self.ports[0]} 2\n"
                            "sentinel down-after-milliseconds main 700\nsentinel failover-timeout main 3000\n")
            machine.start(["redis-server", file, "--sentinel"], self.folder)
        until("the Sentinels know each other", lambda: all(
            "num-other-sentinels\r\n$1\r\n2" in ask(port, "SENTINEL", "MASTER", "main") for port in self.sentinels))
        hosts = ",".join(f"127.0.0.1:{port}" for port in self.sentinels)
        self.url, self.port = f"redis+sentinel://{hosts}/main", self.ports[1]

    def server(self, port, *more):
        command = ["redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", *more]
        process = self.machine.start(command, self.folder)
        until("Redis answers", lambda: "PONG" in ask(port, "PING"))
        return process

    def lose(self):
        self.first.kill()
        self.first.wait()
        if self.case == "kill":
            time.sleep(2)
            self.server(self.ports[0])


class Fleet:
    def __init__(self, machine, program, mock, load, seconds, case):
        self.load, self.seconds, self.given, self.over = load, seconds, 0, threading.Event()
        provider = here.Mock(machine, mock)
        self.store = Store(machine, case)
        self.ports = [self.gateway(machine, program, provider) for _ in range(2)]

    def gateway(self, machine, program, provider):
        folder, port = machine.scratch("gateway"), here.free_port()
        config = {
            "serve": {"listen": f"127.0.0.1:{port}"},
            "store": {"redis": self.store.url},
            "log": {"level": "error"},
            "providers": {"one": {"kind": "openai", "base_url": provider.url, "keys": ["sk-mock"]}},
            "routes": {"ok": ["one/ok"]},
        }
        (folder / "koboshi.yaml").write_text(json.dumps(config))
        machine.start([program, "serve", "--config", folder / "koboshi.yaml"], folder)
        until(f"the gateway answers ({folder / 'log'})", lambda: here.completes(port, [], "ok", peers.KEY) == 200)
        return port

    def ordinary(self):
        command = [self.load, "rate", "--url", f"http://127.0.0.1:{self.ports[0]}/v1/chat/completions", "--key", peers.KEY, "--body", BODY,
                   "--rate", RATE, "--seconds", self.seconds, "--warm", 1]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True, timeout=300)
        told = json.loads(done.stdout)
        bad = told["requests"] - told["status"].get("200", 0)
        return told["latency_us"]["p50"], told["latency_us"]["p99"], bad

    def orders(self):
        """Facts that the other gateway learns: one model after the other rests."""
        while not self.over.wait(0.05):
            order = {"key": f"model:m-{self.given}", "action": "cool", "until": "2099-01-01T00:00:00Z", "force": True}
            request = urllib.request.Request(f"http://127.0.0.1:{self.ports[1]}/koboshi/cooldowns", json.dumps(order).encode(),
                                             {"content-type": "application/json"})
            with urllib.request.urlopen(request, timeout=10):
                self.given += 1

    def lost(self):
        """How many facts the store has not got half a minute later."""
        deadline = time.monotonic() + 30
        while True:
            there = ask(self.store.port, "HKEYS", "koboshi:records").count("cooldown model:m-")
            if there >= self.given or time.monotonic() > deadline:
                return self.given - there
            time.sleep(0.1)

    def measure(self):
        orders = threading.Thread(target=self.orders, daemon=True)
        orders.start()
        p50, p99, bad = self.ordinary()
        told = {"undisturbed p50 us": p50, "undisturbed p99 us": p99, "undisturbed failed": bad}
        losing = threading.Timer(1 + self.seconds / 4, self.store.lose)
        losing.start()
        p50, p99, bad = self.ordinary()
        losing.join()
        self.over.set()
        orders.join()
        told |= {"disturbed p50 us": p50, "disturbed p99 us": p99, "disturbed failed": bad, "p99 ratio": p99 / told["undisturbed p99 us"]}
        begin = time.monotonic()
        told |= {"facts": self.given, "facts lost": self.lost(), "seconds until all are there": time.monotonic() - begin}
        return told


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--koboshi", metavar="BIN", help="this program in place of a release build")
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=12, help="length of each measured part")
    parser.add_argument("--cases", default=",".join(CASES), help="some of them: " + ", ".join(CASES))
    args = parser.parse_args()
    mock, load = programs()
    gateway = peers.Koboshi(args.koboshi)
    gateway.install()
    missed = 0
    for run, case in ((run, case) for run in range(args.runs) for case in args.cases.split(",")):
        say(f"run {run + 1}, {case}, load of the machine {os.getloadavg()[0]:.1f}")
        with here.Machine(keep=False) as machine:
            told = Fleet(machine, gateway.program, mock, load, args.seconds, case).measure()
        for name, value in told.items():
            goal = f"   goal: at most {GOALS[name]:g}" if name in GOALS else ""
            print(f"{name:28} {value if isinstance(value, int) else format(value, '.1f')}{goal}", flush=True)
            missed += name in GOALS and value > GOALS[name]
        print()
    sys.exit(f"{missed} goals missed" if missed else 0)


if __name__ == "__main__":
    main()
