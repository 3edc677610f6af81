"""Processes, ports, processor time and memory of this machine.

Every process that is started here is ended here, with the processes it started itself: each is the head of a session of its own.
"""
import contextlib
import json
import os
import pathlib
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

TICK = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
DESCRIPTORS = 65536


def say(*words):
    print(*words, file=sys.stderr, flush=True)


def which(program):
    return shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def raise_descriptors():
    """As many open files as we may have; who is root may have more."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for want in (max(hard, DESCRIPTORS), hard):
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (want, want))
            return want
        except (ValueError, OSError):
            continue
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def fields(pid):
    """The fields of a process after its name."""
    text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    return text[text.rindex(")") + 2:].split()


def family(pid):
    """The process and everything that descends from it."""
    children = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                children.setdefault(int(fields(name)[1]), []).append(int(name))
    found, to_see = [], [pid]
    while to_see:
        one = to_see.pop()
        found.append(one)
        to_see += children.get(one, [])
    return found


def cpu_seconds(pids):
    """User and system time."""
    ticks = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            ticks += sum(int(part) for part in fields(pid)[11:13])
    return ticks / TICK


def resident(pids):
    """Resident memory in bytes."""
    pages = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            pages += int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * PAGE


class Machine:
    """Starts processes in a scratch folder and ends them."""

    def __init__(self, keep, together=False):
        """`together`: in one session. Linux gives each session its own share of the processors (autogroup), and priorities count only within one."""
        self.keep, self.together = keep, together
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="koboshi-bench-"))
        self.running = []
        self.count = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in list(self.running):
            self.stop(process)
        if self.keep:
            say(f"logs and configs are in {self.folder}")
        else:
            shutil.rmtree(self.folder, ignore_errors=True)

    def scratch(self, name):
        self.count += 1
        folder = self.folder / f"{self.count:03}-{name}"
        folder.mkdir()
        return folder

    def start(self, command, folder, environment=None):
        log = (folder / "log").open("ab")
        # A proxy of the environment must not stand between two programs of this machine.
        alone = {name: "127.0.0.1,localhost" for name in ("NO_PROXY", "no_proxy")}
        apart = {"process_group": 0} if self.together else {"start_new_session": True}
        process = subprocess.Popen([str(part) for part in command], env={**os.environ, **alone, **(environment or {})}, cwd=folder,
                                   stdin=subprocess.DEVNULL, stdout=log, stderr=log, **apart)
        log.close()
        process.log = folder / "log"
        self.running.append(process)
        return process

    def stop(self, process):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            pass
        # What it started may outlive it.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if process in self.running:
            self.running.remove(process)


def completes(port, headers, model, key, timeout=10):
    """The status of one completion, or nothing."""
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": "hello"}]})
    head = [f"POST /v1/chat/completions HTTP/1.1", f"host: 127.0.0.1:{port}", "content-type: application/json",
            f"authorization: Bearer {key}", "connection: close", f"content-length: {len(body)}", *headers]
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=timeout) as client:
            client.sendall(("\r\n".join(head) + "\r\n\r\n" + body).encode())
            return int(client.recv(4096).split()[1])
    except (OSError, IndexError, ValueError):
        return None


class Mock:
    """The provider that all gateways ask."""

    def __init__(self, machine, program):
        self.port = free_port()
        folder = machine.scratch("mock")
        self.process = machine.start([program, f"127.0.0.1:{self.port}"], folder)
        deadline = time.monotonic() + 10
        while completes(self.port, [], "ok", "") != 200:
            if time.monotonic() > deadline or self.process.poll() is not None:
                sys.exit(f"the mock did not start: {self.process.log.read_text()}")
            time.sleep(0.01)
        self.base = f"http://127.0.0.1:{self.port}"
        self.url = f"{self.base}/v1"

    def ask(self, path, method="POST"):
        # No proxy of the environment stands between us and this machine.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", method=method)
        with opener.open(request, timeout=10) as answer:
            return json.load(answer)

    def stats(self):
        return self.ask("/stats", "GET")
