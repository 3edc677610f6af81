"""Servers of the official MCP SDKs start and stop an agent of `koboshi supervise`; one that is killed is asked again when it is back.

Usage: run.py KOBOSHI PYTHON NODE_FOLDER   PYTHON has the packages of tests/sdk/requirements.txt, NODE_FOLDER those of tests/sdk/package.json.
"""
import json
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).parent.resolve()
DEADLINE = 60


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Case:
    """One supervisor with one agent, which does what the server says."""

    def __init__(self, koboshi, folder, mcp):
        self.koboshi, self.folder, self.word = koboshi, folder, folder / "word"
        agent = {"command": ["sleep", "1000"], "gateway": False, "survives": False, "projects": ["prj_001"], "when": {"mcp": mcp, "interval": "200ms"}}
        (folder / "koboshi.yaml").write_text(json.dumps({"agents": {"agt_001": agent}}))
        self.store, self.log = str(folder / "koboshi.db"), folder / "log"
        with self.log.open("w") as log:
            command = [koboshi, "supervise", "--config", folder / "koboshi.yaml", "--store", self.store]
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def state(self):
        out = subprocess.run([self.koboshi, "status", "--format", "json", "--store", self.store], capture_output=True, text=True).stdout
        return {one["agent"]: one["state"] for one in json.loads(out or "{}").get("agents", [])}.get("agt_001/prj_001")

    def becomes(self, state):
        deadline = time.monotonic() + DEADLINE
        while (seen := self.state()) != state:
            if time.monotonic() > deadline:
                sys.exit(f"it is {seen}, not {state}:\n{self.log.read_text()}")
            time.sleep(0.1)

    def says(self, text):
        deadline = time.monotonic() + DEADLINE
        while text not in self.log.read_text():
            if time.monotonic() > deadline:
                sys.exit(f"it does not say {text!r}:\n{self.log.read_text()}")
            time.sleep(0.1)

    def stop(self):
        self.process.terminate()
        self.process.wait(30)


def follows(case):
    """The agent does what the server says."""
    case.becomes("waiting")
    case.word.write_text("start")
    case.becomes("running")
    case.word.write_text("stop")
    case.becomes("waiting")


def main():
    koboshi, python, node = sys.argv[1:]
    koboshi, node = str(pathlib.Path(koboshi).resolve()), pathlib.Path(node).resolve()
    # A module is looked for beside the file that wants it.
    shutil.copy(HERE / "server.mjs", node / "mcp-server.mjs")
    python = str(pathlib.Path(python).absolute())
    for name in ("Python, stdio", "TypeScript, stdio", "Python, HTTP"):
        with tempfile.TemporaryDirectory(prefix="koboshi-mcp-") as folder:
            folder = pathlib.Path(folder)
            word, port = folder / "word", free_port()
            word.write_text("none")
            server = None
            if name == "Python, HTTP":
                command = [python, str(HERE / "server.py"), str(word), str(port)]
                mcp = {"url": f"http://127.0.0.1:{port}/mcp"}
                server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            elif name.startswith("Python"):
                mcp = {"command": [python, str(HERE / "server.py"), str(word), "stdio"]}
            else:
                mcp = {"command": ["node", str(node / "mcp-server.mjs"), str(word)]}
            case = Case(koboshi, folder, mcp)
            try:
                follows(case)
                if server:
                    server.send_signal(signal.SIGKILL)
                    server.wait()
                    case.says("cannot ask whether it is wanted")
                    word.write_text("start")
                    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                    case.becomes("running")
            finally:
                case.stop()
                if server:
                    server.kill()
                    server.wait()
            print(f"ok    {name}", flush=True)
    print("servers of the official MCP SDKs start and stop agents")


main()
