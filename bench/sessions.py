#!/usr/bin/env python3
"""What sessions cost: memory of idle ones, pings among them, resume, latency of a frame, writes to the store.

    bench/sessions.py --koboshi target/release/koboshi            everything, about three minutes
    bench/sessions.py --koboshi target/release/koboshi --parts idle --sessions 1000
    bench/sessions.py --koboshi target/release/koboshi --parts connect,resume,remote,back --store sqlite

Everything runs on the loopback address. `writes` and `--store redis` need a `redis-server`; its own counters say what was written.
`remote` is a reader at another gateway than the one that answers, `back` are all clients at once after their gateway was killed and started
again: both need `--store sqlite` or `redis`.
"""
import argparse
import http.client
import http.server
import json
import os
import pathlib
import random
import socketserver
import statistics
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from rig import machine as here  # noqa: E402
from rig.machine import say  # noqa: E402
from rig.websocket import Session  # noqa: E402

PARTS = ("idle", "connect", "resume", "latency", "writes", "remote", "back", "long")


class Provider(http.server.BaseHTTPRequestHandler):
    """An OpenAI-compatible stream whose pieces are the time at which they are sent. The message says how many, and how far apart."""
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        count, pause_ms = map(float, request["messages"][-1]["content"].split("x"))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for _ in range(int(count)):
            time.sleep(pause_ms / 1000)
            self.event({"delta": {"content": f"{time.monotonic_ns()} "}, "finish_reason": None})
        self.event({"delta": {}, "finish_reason": "stop"})
        self.chunk(b"data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def event(self, choice):
        body = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [{"index": 0, **choice}]}
        self.chunk(b"data: " + json.dumps(body).encode() + b"\n\n")

    def chunk(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True


def provider():
    """In a process of its own, so that it does not wait for this one's lock. Ends with this process."""
    port = here.free_port()
    child = os.fork()
    if child == 0:
        threading.Thread(target=lambda: (_wait_for_orphanage(), os._exit(0)), daemon=True).start()
        Server(("127.0.0.1", port), Provider).serve_forever()
    return port, child


def _wait_for_orphanage():
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(0.5)


def gateway(machine, program, upstream, store="memory", name="gateway"):
    folder, port = machine.scratch(name), here.free_port()
    (folder / "koboshi.yaml").write_text(f"""
serve: {{listen: "127.0.0.1:{port}"}}
providers:
  mock: {{kind: openai, base_url: "http://127.0.0.1:{upstream}/v1", keys: [none]}}
routes:
  main: {{chain: [mock/m]}}
sessions: {{model: main}}
""")
    process = machine.start([program, "serve", "--config", folder / "koboshi.yaml", "--store", store], folder)
    for _ in range(200):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1)
            connection.request("GET", "/health")
            if connection.getresponse().status == 200:
                return process, port
        except OSError:
            pass
        if process.poll() is not None:
            break
        time.sleep(0.05)
    raise RuntimeError(f"the gateway did not start: {process.log.read_text()[-2000:]}")


def store_of(args, machine, name):
    """Where a part keeps its sessions, new each time."""
    if args.store == "sqlite":
        return str(machine.scratch(f"store-{name}") / "koboshi.db")
    if args.store != "redis":
        return "memory"
    redis, folder = here.free_port(), machine.scratch(f"redis-{name}")
    machine.start(["redis-server", "--port", redis, "--bind", "127.0.0.1", "--save", "", "--dir", folder], folder)
    time.sleep(1)
    return f"redis://127.0.0.1:{redis}"


def shares(values, unit=1.0):
    values = sorted(values)
    at = lambda share: values[min(len(values) - 1, int(share * len(values)))] / unit
    return {"p50": at(0.5), "p99": at(0.99), "max": values[-1] / unit, "count": len(values)}


def idle(args, machine, upstream):
    """Sessions that are attached and do nothing, and pings among them."""
    process, port = gateway(machine, args.koboshi, upstream)
    for n in range(50):
        Session(port, f"warm-{n}").open().close()
    time.sleep(1)
    before = here.resident([process.pid])
    held = []
    began = time.monotonic()
    for n in range(args.sessions):
        held.append(Session(port, f"tab-{n}").open())
        if n % 500 == 499:
            for session in held:
                session.tend()
    opening = time.monotonic() - began
    settled = time.monotonic() + 5
    while time.monotonic() < settled:
        for session in held:
            session.tend()
    after = here.resident([process.pid])
    chance, times = random.Random(7), []
    for n in range(args.pings):
        session = chance.choice(held)
        session.tend()
        started = time.monotonic_ns()
        session.send({"type": "ping", "t": n})
        session.until("pong")
        times.append(time.monotonic_ns() - started)
        if n % 500 == 499:
            for other in held:
                other.tend()
    quiet_cpu, quiet = here.cpu_seconds([process.pid]), time.monotonic()
    while time.monotonic() < quiet + 22:
        for session in held:
            session.tend()
    heartbeat = (here.cpu_seconds([process.pid]) - quiet_cpu) / (time.monotonic() - quiet)
    for session in held:
        session.close()
    machine.stop(process)
    return {"sessions": len(held), "bytes_each": (after - before) / len(held), "opened_per_second": len(held) / opening,
            "ping_ms": shares(times, 1e6), "heartbeat_core_share": heartbeat}


def connect(args, machine, upstream):
    """Connect, hello, first frame, one after the other."""
    process, port = gateway(machine, args.koboshi, upstream, store_of(args, machine, "connect"))
    times = []
    for n in range(args.connects):
        started = time.monotonic_ns()
        session = Session(port, f"tab-{n}").open()
        times.append(time.monotonic_ns() - started)
        session.close()
    machine.stop(process)
    return {"connect_ms": shares(times, 1e6)}


def resume(args, machine, upstream):
    """A reader that missed 200 frames comes back, from the upgrade to the last of them."""
    process, port = gateway(machine, args.koboshi, upstream, store_of(args, machine, "resume"))
    writer = Session(port, "writer").open()
    writer.send({"type": "chat", "id": "c-1", "content": "205x2"})
    writer.until("accepted")
    done = writer.until("done")
    opened, times, frames, ways = writer.opened, [], [], {}
    token = opened["resume"]
    for n in range(args.resumes):
        session = Session(port, "writer", session=opened["session"], resume=token, epoch=opened["epoch"], after=done["seq"] - 200)
        started = time.monotonic_ns()
        session.open()
        token = session.opened["resume"]
        count = 0
        ways[session.opened["resumed"]] = ways.get(session.opened["resumed"], 0) + 1
        while True:
            frame = session.frame()
            count += 1
            if frame["type"] == "snapshot" and not frame.get("more") or frame.get("seq") == done["seq"]:
                break
        times.append(time.monotonic_ns() - started)
        frames.append(count)
        session.close()
    machine.stop(process)
    return {"missed": 200, "resume_ms": shares(times, 1e6), "frames_sent": statistics.median(frames), "ways": ways}


def over_http(port, message):
    """How long each piece took from the provider to the reader, over the HTTP stream."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.connect()
    connection.request("POST", "/v1/chat/completions", json.dumps({"model": "main", "stream": True, "messages": [{"role": "user", "content": message}]}),
                       {"content-type": "application/json"})
    answer, times = connection.getresponse(), []
    for line in answer:
        now = time.monotonic_ns()
        if line.startswith(b'data: {'):
            choices = json.loads(line[6:]).get("choices") or [{}]
            if text := (choices[0].get("delta") or {}).get("content"):
                times += [now - int(text.split()[-1])]
    connection.close()
    return times


def over_session(session, message, name):
    session.send({"type": "chat", "id": name, "content": message})
    times = []
    while True:
        text = session.text()
        now = time.monotonic_ns()
        frame = json.loads(text)
        if frame["type"] == "content":
            times.append(now - int(frame["data"].split()[-1]))
        elif frame["type"] == "done":
            return times
        elif frame["type"] == "error":
            raise RuntimeError(f"an error: {frame}")


def latency(args, machine, upstream):
    """The same pieces over HTTP and over a session, in turns."""
    process, port = gateway(machine, args.koboshi, upstream)
    plain, framed, differences = [], [], []
    message = f"{args.pieces}x5"
    over_http(port, message)
    for n in range(args.rounds):
        session = Session(port, f"tab-{n}").open()
        first, second = over_http(port, message), over_session(session, message, f"c-{n}")
        session.close()
        plain += first
        framed += second
        differences.append(statistics.median(second) - statistics.median(first))
    machine.stop(process)
    return {"http_us": shares(plain, 1e3), "session_us": shares(framed, 1e3), "added_p50_us": statistics.median(differences) / 1e3,
            "added_by_round_us": [round(one / 1e3) for one in differences]}


def remote(args, machine, upstream):
    """The pieces of an answer at a reader of another gateway, and at one of the gateway that answers."""
    if args.store == "memory":
        return {"left out": "two gateways need --store sqlite or redis"}
    store = store_of(args, machine, "remote")
    first, here_port = gateway(machine, args.koboshi, upstream, store, "first")
    second, there_port = gateway(machine, args.koboshi, upstream, store, "second")
    writer = Session(here_port, "writer").open()
    reader = Session(there_port, "reader", session=writer.opened["session"], resume=writer.opened["resume"]).open()
    times, frames = {"here": [], "there": []}, {"here": 0, "there": 0}

    def read(session, name):
        while True:
            text = session.text()
            now = time.monotonic_ns()
            frame = json.loads(text)
            if frame["type"] == "content":
                frames[name] += 1
                times[name] += [now - int(stamp) for stamp in frame["data"].split()]
            elif frame["type"] == "done":
                return
            elif frame["type"] == "error":
                raise RuntimeError(f"an error: {frame}")

    for n in range(args.rounds):
        readers = [threading.Thread(target=read, args=one) for one in ((writer, "here"), (reader, "there"))]
        for thread in readers:
            thread.start()
        writer.send({"type": "chat", "id": f"c-{n}", "content": f"{args.pieces // 2}x20"})
        for thread in readers:
            thread.join()
    machine.stop(first)
    machine.stop(second)
    return {"store": args.store, "here_ms": shares(times["here"], 1e6), "there_ms": shares(times["there"], 1e6), "frames": frames}


def back(args, machine, upstream):
    """All clients come back at once when their gateway was killed and started again."""
    if args.store == "memory":
        return {"left out": "it needs --store sqlite or redis"}
    store = store_of(args, machine, "back")
    process, port = gateway(machine, args.koboshi, upstream, store)
    opened = []
    for n in range(args.returning):
        session = Session(port, f"tab-{n}").open()
        opened.append(session.opened)
        session.close()
    os.kill(process.pid, 9)
    process.wait()
    process, port = gateway(machine, args.koboshi, upstream, store, "again")
    times, held, lock, waiting = [], [], threading.Lock(), list(enumerate(opened))

    def come_back():
        while True:
            with lock:
                if not waiting:
                    return
                n, known = waiting.pop()
            started = time.monotonic_ns()
            session = Session(port, f"tab-{n}", session=known["session"], resume=known["resume"], epoch=known["epoch"], after=known["seq"]).open()
            with lock:
                times.append(time.monotonic_ns() - started)
                held.append(session)

    began = time.monotonic()
    threads = [threading.Thread(target=come_back) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    passed = time.monotonic() - began
    ways = {way: sum(session.opened["resumed"] == way for session in held) for way in ("replay", "snapshot")}
    for session in held:
        session.close()
    machine.stop(process)
    return {"store": args.store, "clients": args.returning, "seconds": passed, "per_second": args.returning / passed, "each_ms": shares(times, 1e6), "ways": ways}


def long(args, machine, upstream):
    """A short turn in a new conversation and in one of 3 MiB: what is stored before it is shown holds the whole conversation."""
    store = store_of(args, machine, "long")
    process, port = gateway(machine, args.koboshi, upstream, store)
    figures = {}

    def received():
        if args.store != "redis":
            return 0
        said = subprocess.run(["redis-cli", "-u", store, "info", "stats"], capture_output=True, text=True, check=True, timeout=10).stdout
        return int(next(line.split(":")[1] for line in said.splitlines() if line.startswith("total_net_input_bytes:")))

    for name, messages in (("new", 0), ("3 MiB", 4)):
        session = Session(port, f"tab-{messages}").open()
        turn = 0
        for _ in range(messages):
            # The provider reads two numbers; blanks around them are none of its business.
            session.send({"type": "chat", "id": f"big-{turn}", "content": "1x1" + " " * 786_000})
            session.until("done")
            turn += 1
        accepted, done, before = [], [], received()
        for n in range(30):
            started = time.monotonic_ns()
            session.send({"type": "chat", "id": f"c-{n}", "content": "1x1"})
            session.until("accepted")
            accepted.append(time.monotonic_ns() - started)
            session.until("done")
            done.append(time.monotonic_ns() - started)
        figures[name] = {"accepted_ms": shares(accepted, 1e6), "done_ms": shares(done, 1e6), "bytes_to_redis_per_turn": (received() - before) // 30}
        session.close()
    machine.stop(process)
    return {"store": args.store, **figures}


def writes(args, machine, upstream):
    """Commands that change something in Redis while a turn runs, less those of an idle gateway."""
    if not here.which("redis-server"):
        return {"left out": "no redis-server"}
    redis = here.free_port()
    folder = machine.scratch("redis")
    server = machine.start(["redis-server", "--port", redis, "--bind", "127.0.0.1", "--save", "", "--dir", folder], folder)
    time.sleep(1)

    def commands():
        said = subprocess.run(["redis-cli", "-p", str(redis), "info", "commandstats"], capture_output=True, text=True, check=True, timeout=10).stdout
        return {line.split(":")[0].removeprefix("cmdstat_"): int(line.split("calls=")[1].split(",")[0]) for line in said.splitlines() if "calls=" in line}

    process, port = gateway(machine, args.koboshi, upstream, f"redis://127.0.0.1:{redis}")
    session = Session(port, "tab").open()
    time.sleep(2)

    def during(act):
        before, started = commands(), time.monotonic()
        act()
        passed, after = time.monotonic() - started, commands()
        return {name: (count - before.get(name, 0)) / passed for name, count in after.items() if count > before.get(name, 0) and not name.startswith("info")}

    quiet = during(lambda: time.sleep(args.turn_seconds))
    pieces = args.turn_seconds * 50
    running = during(lambda: over_session(session, f"{pieces}x20", "c-1"))
    machine.stop(process)
    machine.stop(server)
    scripts = lambda of: sum(rate for name, rate in of.items() if name in ("eval", "evalsha", "fcall"))
    return {"pieces_per_second": 50, "commands_idle": rounded(quiet), "commands_running": rounded(running), "writes_per_second": scripts(running) - scripts(quiet)}


def rounded(rates):
    return {name: round(rate, 1) for name, rate in sorted(rates.items()) if rate >= 0.05}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--koboshi", metavar="BIN", required=True)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--store", choices=("memory", "sqlite", "redis"), default="memory")
    parser.add_argument("--returning", type=int, default=5000)
    parser.add_argument("--sessions", type=int, default=8000)
    parser.add_argument("--pings", type=int, default=4000)
    parser.add_argument("--connects", type=int, default=2000)
    parser.add_argument("--resumes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--pieces", type=int, default=400)
    parser.add_argument("--turn-seconds", type=int, default=10)
    args = parser.parse_args()
    args.koboshi = str(pathlib.Path(args.koboshi).resolve())
    here.raise_descriptors()
    upstream, child = provider()
    with here.Machine(False) as machine:
        for part in args.parts.split(","):
            load = os.getloadavg()[0]
            figures = globals()[part](args, machine, upstream)
            print(json.dumps({"part": part, "load_before": round(load, 1), "load_after": round(os.getloadavg()[0], 1), **figures}), flush=True)
    os.kill(child, 15)
    say("done")


if __name__ == "__main__":
    main()
