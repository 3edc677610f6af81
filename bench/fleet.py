#!/usr/bin/env python3
"""How soon a gateway knows what another one learned, and what a Redis carries for each gateway.

    bench/fleet.py --koboshi target/release/koboshi                  both, about three minutes
    bench/fleet.py --koboshi BIN --parts heard --rounds 50
    bench/fleet.py --koboshi BIN --parts carried --gateways 1,4,8

heard    a quota that A meets stops B: from A's answer to its client until B would not ask any more, on a file and on a Redis
carried  commands and bytes that the server counts for each gateway and minute, at rest and with 1,000 records of others

Everything runs on the loopback address; both need a `redis-server`.
"""
import argparse
import contextlib
import http.client
import http.server
import json
import pathlib
import socket
import socketserver
import statistics
import subprocess
import tempfile
import threading
import time

import sys
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from rig.machine import free_port, say, which  # noqa: E402

PARTS = ("heard", "carried")
QUESTION = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Hello"}]})
QUOTA = json.dumps({"error": {"message": "You exceeded your current quota", "type": "insufficient_quota", "code": "insufficient_quota"}})


class Provider(http.server.BaseHTTPRequestHandler):
    """Refuses everything for want of quota."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        body = QUOTA.encode()
        self.send_response(429)
        self.send_header("content-type", "application/json")
        self.send_header("retry-after", "7200")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True


@contextlib.contextmanager
def provider():
    server = Server(("127.0.0.1", 0), Provider)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()


@contextlib.contextmanager
def process(command):
    child = subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield child
    finally:
        child.terminate()
        child.wait()


def ask(port, method, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(method, path, body, {"content-type": "application/json"} if body else {})
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def wait_for(what, holds):
    end = time.monotonic() + 30
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            if holds():
                return
        time.sleep(0.01)
    raise SystemExit(f"{what} did not happen")


@contextlib.contextmanager
def redis():
    port = free_port()
    program = which("redis-server") or which("valkey-server")
    with process([program, "--port", port, "--save", "", "--appendonly", "no", "--bind", "127.0.0.1"]):
        wait_for("the start of Redis", lambda: info(port))
        yield port


def order(port, *words):
    """One command to the server, and its answer as text."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        parts = [str(word).encode() for word in words]
        connection.sendall(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts))
        stream = connection.makefile("rb")
        first = stream.readline()
        if first.startswith(b"$"):
            return stream.read(int(first[1:])).decode()
        return first.decode()


def info(port):
    lines = (line.split(":", 1) for line in order(port, "INFO").splitlines() if ":" in line)
    return {name: value.strip() for name, value in lines}


@contextlib.contextmanager
def gateways(program, folder, url, store, count):
    config = pathlib.Path(folder) / "koboshi.yaml"
    config.write_text(json.dumps({
        "serve": {"threads": 1},
        "providers": {"one": {"kind": "openai", "base_url": url, "keys": ["sk-own"]}},
        "routes": {"m": ["one/m"]},
    }))
    with contextlib.ExitStack() as stack:
        ports = [free_port() for _ in range(count)]
        for port in ports:
            stack.enter_context(process([program, "serve", "--config", config, "--store", store, "--listen", f"127.0.0.1:{port}"]))
        line = f"koboshi_gateways {count}"
        wait_for(f"{count} gateways", lambda: all(line in ask(port, "GET", "/metrics")[1] for port in ports))
        yield ports


def rests(port):
    """Whether the gateway itself, not its store, knows that the account rests: it asks no provider then."""
    targets = json.loads(ask(port, "GET", "/koboshi/targets")[1])["targets"]
    return any(rest["state"] == "cooling" for target in targets for rest in target["rests"])


def heard(program, rounds):
    for name in ("SQLite", "Redis"):
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            store = f"redis://127.0.0.1:{stack.enter_context(redis())}/0" if name == "Redis" else f"{folder}/koboshi.db"
            one, two = stack.enter_context(gateways(program, folder, stack.enter_context(provider()), store, 2))
            took = []
            for _ in range(rounds):
                ask(one, "POST", "/v1/chat/completions", QUESTION)
                answered = time.monotonic()
                while not rests(two):
                    pass
                took.append((time.monotonic() - answered) * 1000)
                for key in ("account:one", "key:one", "provider:one"):
                    ask(one, "POST", "/koboshi/cooldowns", json.dumps({"key": key, "action": "clear"}))
                wait_for("the end of the rest", lambda: not rests(one) and not rests(two))
            took.sort()
            print(f"| {name} | {statistics.median(took):.0f} ms | {took[int(len(took) * 0.95)]:.0f} ms | {took[-1]:.0f} ms |")


def carried(program, counts, seconds):
    for records in (0, 1000):
        for count in counts:
            with contextlib.ExitStack() as stack:
                folder, port = stack.enter_context(tempfile.TemporaryDirectory()), stack.enter_context(redis())
                store = f"redis://127.0.0.1:{port}/0"
                served = stack.enter_context(gateways(program, folder, stack.enter_context(provider()), store, count))
                for number in range(records):
                    body = {"key": f"account:a{number}", "action": "cool", "until": "2099-01-01T00:00:00Z", "force": True}
                    ask(served[0], "POST", "/koboshi/cooldowns", json.dumps(body))
                time.sleep(5)
                before, began = info(port), time.monotonic()
                time.sleep(seconds)
                after, minutes = info(port), (time.monotonic() - began) / 60
                def grew(field, convert=int):
                    return (convert(after[field]) - convert(before[field])) / minutes / count
                processor = sum(grew(f"used_cpu_{part}", float) for part in ("user", "sys"))
                print(f"| {records} | {count} | {grew('total_commands_processed'):.0f} | {grew('total_net_input_bytes') / 1024:.1f} KB | "
                      f"{grew('total_net_output_bytes') / 1024:.1f} KB | {processor * 1000:.1f} ms |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--koboshi", required=True)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--gateways", default="1,4,8")
    parser.add_argument("--seconds", type=int, default=60)
    asked = parser.parse_args()
    parts = asked.parts.split(",")
    if "heard" in parts:
        say("heard: from A's answer until B knows")
        print("| store | median | 95 % | longest |\n|---|---|---|---|")
        heard(asked.koboshi, asked.rounds)
    if "carried" in parts:
        say("carried: for each gateway and minute")
        print("| records | gateways | commands | in | out | processor |\n|---|---|---|---|---|---|")
        carried(asked.koboshi, [int(count) for count in asked.gateways.split(",")], asked.seconds)


if __name__ == "__main__":
    main()
