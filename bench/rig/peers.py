"""The gateways: where they come from, how they are configured, how they are started.

Packages come from the usual registries by name. What cannot be had is named, and the run goes on without it. A gateway's config names one
of three things: `plain` (everything to the mock), `faults` (primaries that fall, a spare that does not) and `open` (koboshi's own
simulated provider). A fourth is `dialects`: a provider for each, named by the model.
"""
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import time

from . import machine as here
from .dialects import CHAT, DIALECTS
from .machine import say

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PEERS = ROOT / "bench" / "target" / "peers"
KEY = "sk-bench-" + hashlib.sha256(b"koboshi bench").hexdigest()[:32]

PLAIN = ("ok", "wait60", "stamp-chunks200-gap5", "stamp-chunks200")
# The pieces of the last one come with pauses, so that they are through before the cut.
CUT_GAP = 50
WAYS = ("fail503", "limit7", "reset", "hang", "cut0", f"cut3-gap{CUT_GAP}")
STEADY, SPARE = "steady", "spare"
TIMEOUT = 3


def fallen(way, number):
    """The primary of one request; every request has its own, so that none profits from what the one before has learned."""
    return f"{way}-r{number}"


def run(command, **more):
    """Runs an installer; its words are shown only if it fails."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **more)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no word why"]
        why = next((line for line in lines if "error" in line.lower() or line.startswith("E:")), lines[-1])
        raise Missing(f"{pathlib.Path(str(command[0])).name}: {why.strip()[:200]}")


class Missing(Exception):
    """Cannot be had here."""


def apt(program, package):
    if here.which(program):
        return
    if os.geteuid() != 0 or not here.which("apt-get"):
        raise Missing(f"no {program}; it is in the package {package}")
    say(f"installing {package}")
    # Installing must not start a server.
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    run(["apt-get", "update", "-qq"], env=environment)
    run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", package], env=environment)


class Running:
    """A gateway that answers."""

    def __init__(self, gateway, process, port, headers, cold):
        self.name, self.gateway, self.process, self.headers, self.cold = gateway.name, gateway, process, headers, cold
        self.base, self.dialect, self.prefix = f"http://127.0.0.1:{port}", CHAT, ""
        self.port = port

    def pids(self):
        return here.family(self.process.pid)


class Gateway:
    """One that can be measured."""

    name = ""
    rate = 500  # requests a second at a fixed rate
    stream_rate = 10  # paced streams a second
    probes = 20  # requests for each way to fall
    together = 1  # this many of them at the same time
    falls_over = True  # it can be given a spare
    speaks = False  # it is measured in every dialect
    translates = False  # and between any two
    moods = ("",)  # ways to set it up for an outage, beside how it comes

    def install(self):
        """Raises `Missing`."""

    def prepare(self, folder, port, mock, what, probes, mood):
        """Writes its config; returns command and environment."""
        raise NotImplementedError

    def headers(self, mock, what):
        """What every request to it must carry: for `plain`, or for the primary of this name."""
        return []

    def start(self, machine, mock, what="plain", probes=0, mood=""):
        folder, port = machine.scratch(self.name), here.free_port()
        command, environment = self.prepare(folder, port, mock, what, probes, mood)
        headers = self.headers(mock, "plain")
        model = {"open": "sim/ok", "faults": SPARE, "dialects": "to-chat-ok"}.get(what, "ok")
        begin = time.monotonic()
        process = machine.start(command, folder, environment)
        while here.completes(port, headers, model, KEY) != 200:
            if process.poll() is not None or time.monotonic() - begin > 120:
                machine.stop(process)
                raise Missing(f"{self.name} did not start: {process.log.read_text()[-600:]}")
            time.sleep(0.0005)
        return Running(self, process, port, headers, time.monotonic() - begin)


class Nginx(Gateway):
    """The floor: a proxy that decides nothing."""

    name = "nginx"
    falls_over, speaks = False, True

    def install(self):
        apt("nginx", "nginx-light")

    def prepare(self, folder, port, mock, what, probes, mood):
        temporary = "".join(f"  {kind}_temp_path {folder}/{kind};\n"
                            for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        (folder / "nginx.conf").write_text(f"""daemon off;
worker_processes {os.cpu_count()};
pid {folder}/pid;
error_log {folder}/error.log warn;
events {{ worker_connections 8192; }}
http {{
  access_log off;
{temporary}  client_body_buffer_size 128k;
  keepalive_requests 1000000000;
  upstream mock {{ server 127.0.0.1:{mock.port}; keepalive 256; keepalive_requests 1000000000; }}
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    location / {{
      proxy_pass http://mock;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
      proxy_read_timeout 300s;
    }}
  }}
}}
""")
        return [here.which("nginx"), "-p", folder, "-e", folder / "error.log", "-c", folder / "nginx.conf"], {}


class Koboshi(Gateway):
    """Everything on, as it comes: a key, breaker, gate, guard, check of arguments, metrics, journal in a file."""

    name = "koboshi"
    speaks = translates = True

    def __init__(self, program):
        self.program = program

    def install(self):
        if self.program:
            self.program = pathlib.Path(self.program).resolve()
            return
        say("building koboshi")
        if subprocess.run(["cargo", "build", "--locked", "--release", "-p", "koboshi-cli"], cwd=ROOT).returncode:
            raise Missing("koboshi does not build")
        target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
        self.program = target / "release" / "koboshi"

    def prepare(self, folder, port, mock, what, probes, mood):
        def provider(**more):
            return {"kind": "openai", "base_url": mock.url, "keys": ["sk-mock"], **more}

        config = {
            "serve": {"listen": f"127.0.0.1:{port}"},
            "store": {"path": str(folder / "koboshi.db")},
            "keys": {"bench": {"sha256": hashlib.sha256(KEY.encode()).hexdigest()}},
            "log": {"level": "warn"},
        }
        if what == "plain":
            config |= {"providers": {"mock": provider()}, "routes": {"*": {"chain": ["mock/{model}"]}}}
        elif what == "dialects":
            kinds = {"messages": {"kind": "anthropic"}, "gemini": {"kind": "gemini", "base_url": f"{mock.base}/v1beta"}}
            config |= {
                "providers": {one.name: provider(**kinds.get(one.name, {"dialects": [one.name]})) for one in DIALECTS},
                "routes": {f"to-{one.name}-*": [f"{one.name}/{{model}}"] for one in DIALECTS},
            }
        elif what == "open":
            # Streams that no side ends.
            long = {"first": "1h", "idle": "1h", "total": "1h"}
            config |= {"providers": {"sim": {"kind": "sim", "timeouts": long}}}
            config["serve"] |= {"deadline": "1h", "drain": "0s"}
        else:
            short = {"timeouts": {"first": f"{TIMEOUT}s", "idle": f"{TIMEOUT}s", "whole": f"{TIMEOUT}s"}}
            primaries = [STEADY, *(fallen(way, number) for way in WAYS for number in range(probes))]
            config |= {
                "providers": {SPARE: provider(), **{f"p-{name}": provider(**short) for name in primaries}},
                "routes": {SPARE: [f"{SPARE}/{SPARE}"], **{name: [f"p-{name}/{name}", f"{SPARE}/{SPARE}"] for name in primaries}},
            }
        # JSON is YAML.
        (folder / "koboshi.yaml").write_text(json.dumps(config, indent=1))
        return [self.program, "serve", "--config", folder / "koboshi.yaml"], {}


class Portkey(Gateway):
    """Told in a header of each request. No retries unless asked for, and none are asked for."""

    name = "portkey"
    rate, stream_rate, together = 200, 5, 4

    def install(self):
        apt("npm", "npm")
        folder = PEERS / "portkey"
        self.script = folder / "node_modules/@portkey-ai/gateway/build/start-server.js"
        if self.script.exists():
            return
        say("installing @portkey-ai/gateway")
        folder.mkdir(parents=True, exist_ok=True)
        # Newer ones of these two answer every stream with 500; these are the versions of its own lock file.
        (folder / "package.json").write_text(json.dumps({
            "private": True, "dependencies": {"@portkey-ai/gateway": "1.15.2"},
            "overrides": {"hono": "4.9.7", "@hono/node-server": "1.13.5"}}))
        run(["npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error"], cwd=folder)

    def prepare(self, folder, port, mock, what, probes, mood):
        return ["node", self.script, f"--port={port}", "--headless"], {"NODE_ENV": "production"}

    def headers(self, mock, what):
        target = {"provider": "openai", "api_key": "sk-mock", "custom_host": mock.url}
        if what != "plain":
            names = (what, SPARE)
            target = {"strategy": {"mode": "fallback"}, "request_timeout": TIMEOUT * 1000,
                      "targets": [{**target, "override_params": {"model": name}} for name in names]}
        return ["x-portkey-config: " + json.dumps(target)]


class LiteLlm(Gateway):
    """One worker, no database, its own retries; cooldowns only where they are asked for."""

    name = "litellm"
    rate, stream_rate, probes, together = 25, 1, 3, 3
    moods = ("", "with cooldowns")

    def install(self):
        folder = PEERS / "litellm"
        self.program = folder / "bin/litellm"
        if self.program.exists():
            return
        say("installing litellm[proxy]")
        if subprocess.run([sys.executable, "-c", "import ensurepip"], capture_output=True).returncode:
            apt("pyvenv", "python3-venv")
        run([sys.executable, "-m", "venv", "--clear", folder])
        run([folder / "bin/pip", "install", "-q", "--disable-pip-version-check", "litellm[proxy]"])

    def prepare(self, folder, port, mock, what, probes, mood):
        def model(name, **more):
            return {"model_name": name, "litellm_params": {"model": f"openai/{name}", "api_base": mock.url, "api_key": "sk-mock", **more}}

        config = {"litellm_settings": {"telemetry": False}, "general_settings": {"disable_spend_logs": True}}
        if what == "plain":
            config["model_list"] = [model(name) for name in PLAIN]
        else:
            primaries = [STEADY, *(fallen(way, number) for way in WAYS for number in range(probes))]
            short = {"timeout": TIMEOUT, "stream_timeout": TIMEOUT}
            config["model_list"] = [model(SPARE), *(model(name, **short) for name in primaries)]
            config["router_settings"] = {"fallbacks": [{name: [SPARE]} for name in primaries]}
            if mood:
                # Without this, or with 3, which is its default, it never rests the only deployment of a name.
                config["router_settings"] |= {"allowed_fails": 2, "cooldown_time": 30}
        (folder / "litellm.yaml").write_text(json.dumps(config, indent=1))
        environment = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR", "LITELLM_MASTER_KEY": KEY}
        return [self.program, "--config", folder / "litellm.yaml", "--host", "127.0.0.1", "--port", port, "--num_workers", 1], environment
