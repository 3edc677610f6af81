#!/usr/bin/env python3
"""Ordinary requests beside the worst that clients and a store can do, on this machine.

    bench/hostile.py                        three runs, with a release build
    bench/hostile.py --koboshi BIN --runs 1 --seconds 5
    bench/hostile.py --quick                one short run; the ratio is shown, and only the other goals must be met

A gateway with `serve.memory: 128MiB` caches in a Redis. 1,000 ordinary requests a second are measured twice: undisturbed, and while Redis
accepts connections and reads nothing, clients send tool schemas of 31 MB with a union to a provider of another dialect, and 24 others bodies of 20 MB. Who is refused
with one of these waits as long as `retry-after` says. Then, with all of them still there, the gateway gets a signal to stop. The large clients and their provider run
only when nothing else wants a processor: they stand for other machines. So that this holds, all programs are in one session.
"""
import argparse
import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from gateways import programs  # noqa: E402
from rig import machine as here, peers  # noqa: E402
from rig.machine import say  # noqa: E402

DRAIN = 1.0
RATE, UNIONS, LARGE = 1000, 2, 24
PIECE = 64 * 1024
RATIO = "p99 ratio"
GOALS = {RATIO: 10, "undisturbed failed": 0, "disturbed failed": 0, "peak RSS MB": 300, "stop seconds": DRAIN + 2}
BODY = '{"model":"small","max_tokens":64,"messages":[{"role":"user","content":"question {i}"}]}'


def union():
    """A tool schema of 31 MB that is one union."""
    branch = '{"type":"object","properties":{"a":{"type":"string"}}}'
    schema = '{"oneOf":[' + ",".join([branch] * (31_000_000 // (len(branch) + 1))) + "]}"
    return ('{"model":"union","messages":[{"role":"user","content":"hello"}],"tools":[{"type":"function","function":'
            '{"name":"f","parameters":' + schema + "}}]}").encode()


def text():
    """A body of 20 MB."""
    return ('{"model":"text","messages":[{"role":"user","content":"' + "word " * 4_000_000 + '"}]}').encode()


def post(port, body):
    """The status of one request, and how long to wait before the next one."""
    head = (f"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n"
            f"authorization: Bearer {peers.KEY}\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n")
    with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
        # Who is refused may not get rid of all.
        with contextlib.suppress(ConnectionError):
            client.sendall(head.encode())
            # In pieces: while the kernel copies megabytes for one call, nothing else gets that processor, however low the priority.
            for start in range(0, len(body), PIECE):
                client.sendall(body[start:start + PIECE])
        answer = client.recv(65536).decode(errors="replace").lower()
    lines = answer.split("\r\n\r\n")[0].split("\r\n")
    wait = next((float(line.split(":")[1]) for line in lines if line.startswith("retry-after:")), 0)
    return int(lines[0].split()[1]), wait


def attack(port):
    """Sends large bodies until the standard input ends, then tells what was answered."""
    told, over = {}, threading.Event()

    def client(name, body):
        while not over.is_set():
            try:
                status, wait = post(port, body)
            except ConnectionRefusedError:
                # It has stopped.
                return
            except (OSError, IndexError, ValueError):
                status, wait = "cut", 0.2
            told[f"{name} {status}"] = told.get(f"{name} {status}", 0) + 1
            if name == "union":
                # Beside this many texts they would hardly ever find room, and then leave none.
                wait = 1 if status == 200 else 0.05
            over.wait(wait)

    bodies = [("union", union())] * UNIONS + [("text", text())] * LARGE
    threads = [threading.Thread(target=client, args=one, daemon=True) for one in bodies]
    for thread in threads:
        thread.start()
    print("begun", flush=True)
    sys.stdin.read()
    over.set()
    print(json.dumps(dict(sorted(told.items()))), flush=True)
    os._exit(0)


class Hostile:
    def __init__(self, machine, program, mock, load, seconds):
        self.machine, self.load, self.seconds = machine, load, seconds
        # Two of them: the provider of the ordinary requests is not to be slowed down by what large bodies cost it.
        small, large = here.Mock(machine, mock), here.Mock(machine, mock)
        os.sched_setscheduler(large.process.pid, os.SCHED_IDLE, os.sched_param(0))
        folder, self.port, redis = machine.scratch("gateway"), here.free_port(), here.free_port()
        self.redis = machine.start(["redis-server", "--port", redis, "--bind", "127.0.0.1", "--save", ""], folder)
        provider = {"kind": "openai", "base_url": small.url, "keys": ["sk-mock"]}
        config = {
            "serve": {"listen": f"127.0.0.1:{self.port}", "memory": "128MiB", "drain_timeout": f"{DRAIN:.0f}s"},
            "store": {"redis": f"redis://127.0.0.1:{redis}"},
            "degrade": {"cache": {"mode": "fallback"}},
            "log": {"level": "error"},
            "providers": {"small": provider, "large": {**provider, "base_url": large.url},
                          "other": {**provider, "kind": "anthropic", "base_url": large.url}},
            "routes": {"small": ["small/ok"], "text": ["large/ok"], "union": ["other/ok"]},
        }
        (folder / "koboshi.yaml").write_text(json.dumps(config))
        self.gateway = machine.start([program, "serve", "--config", folder / "koboshi.yaml"], folder)
        until(f"the gateway answers ({folder / 'log'})", lambda: here.completes(self.port, [], "small", peers.KEY) == 200)

    def ordinary(self):
        command = [self.load, "rate", "--url", f"http://127.0.0.1:{self.port}/v1/chat/completions", "--key", peers.KEY, "--body", BODY,
                   "--rate", RATE, "--seconds", self.seconds, "--warm", 1]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True, timeout=300)
        told = json.loads(done.stdout)
        bad = told["requests"] - told["status"].get("200", 0)
        return told["latency_us"]["p50"], told["latency_us"]["p99"], bad

    def resident(self, name):
        status = pathlib.Path(f"/proc/{self.gateway.pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith(name)) / 1024

    def measure(self):
        p50, p99, bad = self.ordinary()
        told = {"undisturbed p50 us": p50, "undisturbed p99 us": p99, "undisturbed failed": bad, "RSS MB": self.resident("VmRSS")}
        os.kill(self.redis.pid, signal.SIGSTOP)
        attackers = subprocess.Popen(["chrt", "--idle", "0", sys.executable, __file__, "--attack", str(self.port)],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            attackers.stdout.readline()
            p50, p99, bad = self.ordinary()
            told |= {"disturbed p50 us": p50, "disturbed p99 us": p99, "disturbed failed": bad, RATIO: p99 / told["undisturbed p99 us"]}
            told["peak RSS MB"] = self.resident("VmHWM")
            begin = time.monotonic()
            self.gateway.send_signal(signal.SIGTERM)
            self.gateway.wait(60)
            told["stop seconds"] = time.monotonic() - begin
            told["large"] = json.loads(attackers.communicate("")[0].splitlines()[-1])
        finally:
            attackers.kill()
            os.kill(self.redis.pid, signal.SIGCONT)
        return told


def until(what, look):
    deadline = time.monotonic() + 30
    while not look():
        if time.monotonic() > deadline:
            sys.exit(f"waited without success: {what}")
        time.sleep(0.05)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--koboshi", metavar="BIN", help="this program in place of a release build")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10, help="length of each measured part")
    parser.add_argument("--quick", action="store_true", help="one short run, in which the ratio is no goal")
    parser.add_argument("--attack", metavar="PORT", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.attack:
        attack(args.attack)
    mock, load = programs()
    gateway = peers.Koboshi(args.koboshi)
    gateway.install()
    if args.quick:
        args.runs, args.seconds = 1, 4
    goals = {name: goal for name, goal in GOALS.items() if not (args.quick and name == RATIO)}
    missed = 0
    for run in range(args.runs):
        say(f"run {run + 1}, load of the machine {os.getloadavg()[0]:.1f}")
        with here.Machine(keep=False, together=True) as machine:
            told = Hostile(machine, gateway.program, mock, load, args.seconds).measure()
        for name, value in told.items():
            goal = f"   goal: at most {goals[name]:g}" if name in goals else ""
            print(f"{name:22} {value if isinstance(value, (dict, int)) else format(value, '.1f')}{goal}", flush=True)
            missed += name in goals and value > goals[name]
        print()
    sys.exit(f"{missed} goals missed" if missed else 0)


if __name__ == "__main__":
    main()
