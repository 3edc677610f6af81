#!/usr/bin/env python3
"""What the dashboard costs the gateway: processor time at a fixed rate of requests, with nobody looking and with viewers.

    bench/viewers.py --koboshi target/release/koboshi            20 viewers, 1,000 requests a second, eight turns of 12 s

A viewer makes the requests that a page makes (web/dashboard/src/live.ts): the journal once, the feed of events, the overview and the targets every two
seconds, and what the page that it is on asks besides; the viewers are spread over the pages. The gateway's own simulated provider answers. Of every hundred
requests `--falls` go to a route whose first target fails, so that the feed has something to say. Turns with and without viewers alternate, and the processor time
of the gateway's process is read from /proc. The load and the viewers are processes of their own.
"""
import argparse
import asyncio
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from rig import machine as here  # noqa: E402
from rig.machine import say  # noqa: E402

CONFIG = {
    "providers": {"shaky": {"kind": "sim"}, "steady": {"kind": "sim"}},
    "request": {"quick_retry_delay": "1ms"},
    "retry": {"initial_delay": "1ms", "max_delay": "5ms"},
    "routes": {"well": ["steady/ok"], "falls": ["shaky/fail-503", "steady/ok"]},
}
CONNECTIONS = 20
# What each page asks besides, and how often.
PAGES = [[], [("journal?limit=100", 15)], [("agents", 2)], [("spend?by=key", 5)], [("sessions", 3), ("status", 3), ("spend", 10)], [("check", 10)]]


async def exchange(reader, writer, head, body=b""):
    """One request on a connection that is kept."""
    writer.write(head + body)
    answer = await reader.readuntil(b"\r\n\r\n")
    lower = answer.lower()
    if b"content-length: " in lower:
        length = int(lower.split(b"content-length: ")[1].split(b"\r\n")[0])
        await reader.readexactly(length)
    else:
        while (size := int(await reader.readline(), 16)) > 0:
            await reader.readexactly(size + 2)
        await reader.readline()
    return int(answer[9:12])


def post(address, model):
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": "hello"}]}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode(), body


async def load(port, rate, falls):
    """Requests at a fixed rate until this process is ended; a line with the number of answers every second."""
    address = f"127.0.0.1:{port}"
    questions = [post(address, "falls" if (n * falls) % 100 < falls else "well") for n in range(100)]
    answers, began, number = [0, 0], time.monotonic(), iter(range(1 << 62))

    async def client():
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for n in number:
            due = began + n / rate
            await asyncio.sleep(max(0, due - time.monotonic()))
            answers[await exchange(reader, writer, *questions[n % 100]) != 200] += 1

    clients = [asyncio.create_task(client()) for _ in range(CONNECTIONS)]
    while not any(one.done() for one in clients):
        await asyncio.sleep(1)
        print(*answers, flush=True)
    for one in clients:
        one.done() and one.result()


async def view(port, count):
    """Pages that are open until this process is ended; a line with the number of events on the feeds every second."""
    address, events = f"127.0.0.1:{port}", [0]
    get = lambda path: f"GET /koboshi/{path} HTTP/1.1\r\nhost: {address}\r\naccept: application/json\r\n\r\n".encode()  # noqa: E731

    async def feed():
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(get("feed"))
        while line := await reader.readline():
            events[0] += line.startswith(b"event: entry")

    async def every(path, pause):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while True:
            status = await exchange(reader, writer, get(path))
            assert status in (200, 404), (path, status)
            await asyncio.sleep(pause)

    async def page(nth):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for path in ("session", "journal?limit=10000"):
            await exchange(reader, writer, get(path))
        writer.close()
        asks = [("overview", 2), ("targets", 2), *PAGES[nth % len(PAGES)]]
        await asyncio.gather(feed(), *(every(path, pause) for path, pause in asks))

    pages = [asyncio.create_task(page(nth)) for nth in range(count)]
    while not any(one.done() for one in pages):
        await asyncio.sleep(1)
        print(events[0], flush=True)
    for one in pages:
        one.done() and one.result()


class Side:
    """The load or the viewers, in a process of their own."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen([sys.executable, __file__, *map(str, arguments)], stdout=subprocess.PIPE, text=True)

    def last(self):
        """Its newest line, as numbers."""
        os.set_blocking(self.process.stdout.fileno(), False)
        lines = self.process.stdout.readlines()
        return list(map(int, lines[-1].split())) if lines else None

    def end(self):
        self.process.kill()
        self.process.wait()


def turn(pid, port, viewers, seconds, args):
    """Cores that the gateway used, requests that were answered a second, errors, and events that viewers got."""
    sides = [Side("--load", port, "--rate", args.rate, "--falls", args.falls)]
    if viewers:
        sides.append(Side("--view", port, "--viewers", viewers))
    try:
        # Connections and the first look at the journal are not what is measured.
        time.sleep(3)
        good, bad = sides[0].last()
        before, began = here.cpu_seconds([pid]), time.monotonic()
        time.sleep(seconds)
        used, took = here.cpu_seconds([pid]) - before, time.monotonic() - began
        more, worse = sides[0].last()
        events = sides[1].last()[0] if viewers else 0
        return used / took, (more - good) / took, worse - bad, events
    finally:
        for side in sides:
            side.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--koboshi", metavar="BIN", default="target/release/koboshi")
    parser.add_argument("--viewers", type=int, default=20)
    parser.add_argument("--rate", type=int, default=1000)
    parser.add_argument("--falls", type=int, default=1, help="of every hundred requests")
    parser.add_argument("--turns", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=12)
    parser.add_argument("--load", type=int, metavar="PORT", help=argparse.SUPPRESS)
    parser.add_argument("--view", type=int, metavar="PORT", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.load:
        return asyncio.run(load(args.load, args.rate, args.falls))
    if args.view:
        return asyncio.run(view(args.view, args.viewers))
    with here.Machine(keep=False) as machine:
        folder, port = machine.scratch("koboshi"), here.free_port()
        (folder / "koboshi.yaml").write_text(json.dumps(CONFIG))
        program = pathlib.Path(args.koboshi).resolve()
        gateway = machine.start([program, "serve", "--config", "koboshi.yaml", "--listen", f"127.0.0.1:{port}", "--store", "store.db"], folder)
        deadline = time.monotonic() + 10
        while here.completes(port, [], "well", "") != 200:
            if time.monotonic() > deadline:
                sys.exit(f"the gateway did not start: {gateway.log.read_text()}")
            time.sleep(0.05)
        # A breaker that opened would end the falls.
        here.completes(port, [], "falls", "")
        order = json.dumps({"target": "shaky/fail-503", "action": "disable"}).encode()
        urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}/koboshi/breakers", order, {"content-type": "application/json"}), timeout=5).close()
        found = {False: [], True: []}
        for nth in range(args.turns):
            looked_at = nth % 4 in (1, 2)
            viewers = args.viewers if looked_at else 0
            cores, rate, errors, events = turn(gateway.pid, port, viewers, args.seconds, args)
            found[looked_at].append(cores)
            say(f"{viewers:3} viewers: {cores:.3f} cores, {rate:.0f} requests a second, {errors} errors, {events} events")
    without, beside = (statistics.median(found[looked_at]) for looked_at in (False, True))
    print(f"| nobody looks | {args.viewers} viewers | difference |\n|---|---|---|")
    print(f"| {without:.3f} cores | {beside:.3f} | {beside - without:.3f} |")


if __name__ == "__main__":
    main()
