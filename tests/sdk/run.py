"""Starts a gateway on a free port and runs the SDK scripts against it.

Usage: run.py KOBOSHI SCRIPT_COMMAND...   The address is appended to the command.
"""
import json
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).parent


def config(falls):
    """Every way to fall as the primary of a chain, with a healthy second."""
    names = sorted({*falls["whole"], *falls["stream"], *falls["tools"]})
    routes = {f"fall:{name}": [f"sim/{name}", "sim/ok"] for name in names}
    # JSON is YAML.
    return json.dumps({
        "store": "memory",
        "providers": {"sim": {"kind": "sim", "timeouts": {"connect": "1s", "first": "1s", "idle": "500ms", "whole": "1s", "total": "20s"}}},
        "retry": {"first": "10ms", "cap": "50ms"},
        "routes": routes,
    })


def main():
    koboshi, *command = sys.argv[1:]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "koboshi.yaml"
        path.write_text(config(json.loads((HERE / "falls.json").read_text())))
        log = (pathlib.Path(folder) / "log").open("w+")
        gateway = subprocess.Popen([koboshi, "serve", "--config", path, "--listen", f"127.0.0.1:{port}"], stderr=log)
        try:
            deadline = time.monotonic() + 30
            while True:
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=5).close()
                    break
                except OSError:
                    if time.monotonic() > deadline or gateway.poll() is not None:
                        log.seek(0)
                        sys.exit(f"the gateway did not start:\n{log.read()}")
                    time.sleep(0.05)
            code = subprocess.run([*command, f"http://127.0.0.1:{port}/v1"]).returncode
        finally:
            gateway.terminate()
            gateway.wait(timeout=60)
        sys.exit(code)


main()
