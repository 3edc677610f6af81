"""A gateway of one's own: started on a free port, asked until it is ready, ended again.

For the tests of the SDKs (tests/sdk) and of the agents (tests/agents). It never touches a running gateway, and whatever happens it takes its own down.
"""
import json
import pathlib
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request

from table import ADMIN_KEY


class DidNotStart(Exception):
    """The gateway did not become ready."""


class Gateway:
    """`with Gateway(program, config) as gateway:`; `gateway.url` is where it listens, without a path."""

    def __init__(self, koboshi, config):
        self.koboshi, self.config = str(koboshi), config

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="koboshi-")
        folder = pathlib.Path(self.folder.name)
        # JSON is YAML.
        (folder / "koboshi.yaml").write_text(json.dumps(self.config))
        self.logged = folder / "log"
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        with self.logged.open("w") as log:
            command = [self.koboshi, "serve", "--config", folder / "koboshi.yaml", "--listen", f"127.0.0.1:{port}"]
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + 30
        while True:
            try:
                urllib.request.urlopen(f"{self.url}/ready", timeout=5).close()
                return self
            except OSError:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    log = self.log()
                    self.__exit__()
                    raise DidNotStart(log) from None
                time.sleep(0.05)

    def __exit__(self, *_):
        # The second signal stops at once: it does not wait for streams that a dead client left open.
        for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):
            if self.process.poll() is None:
                self.process.send_signal(number)
                try:
                    self.process.wait(timeout=5)
                except subprocess.TimeoutExpired:
                    continue
        self.process.wait(timeout=10)
        # What it had to say is there afterwards too.
        self.ended = self.log()
        self.folder.cleanup()

    def log(self):
        return self.logged.read_text()

    def cool(self, key):
        """As an operator does it: no target under this key is asked for two hours."""
        until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 7200))
        order = json.dumps({"key": key, "action": "cool", "until": until, "reason": "maintenance"}).encode()
        headers = {"authorization": f"Bearer {ADMIN_KEY}", "content-type": "application/json"}
        urllib.request.urlopen(urllib.request.Request(f"{self.url}/koboshi/cooldowns", order, headers), timeout=10).close()

    def targets(self):
        """What the gateway knows of its targets, by name."""
        with urllib.request.urlopen(urllib.request.Request(f"{self.url}/koboshi/targets", headers={"authorization": f"Bearer {ADMIN_KEY}"}), timeout=10) as answer:
            return {target["target"]: target for target in json.load(answer)["targets"]}

    def metrics(self):
        """What the gateway has counted, by the name with its labels."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=10) as answer:
            lines = [line for line in answer.read().decode().splitlines() if line and not line.startswith("#")]
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}
