"""Runs the official SDKs against gateways of their own, all at the same time: most of the time is spent waiting for falls.

Usage: run.py KOBOSHI PYTHON NODE_MODULES [SCRIPT...]   Without scripts all of them. KOBOSHI_UPSTREAMS=chat,messages overrides the dialects of table.json.
"""
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import time

from gateway import Gateway
from table import ADMIN_KEY, KEY, TABLE, config, cooled

HERE = pathlib.Path(__file__).parent
SCRIPTS = ["openai_chat", "openai_responses", "anthropic_messages", "google_gemini"]
# One that hangs is an error too.
DEADLINE = 170


def run(koboshi, command, dialects):
    began = time.monotonic()
    with Gateway(koboshi, config(dialects)) as gateway:
        for key in cooled(dialects):
            gateway.cool(key)
        given = {**os.environ, "KOBOSHI_UPSTREAMS": ",".join(dialects), "KOBOSHI_KEY": KEY, "KOBOSHI_ADMIN_KEY": ADMIN_KEY, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
        try:
            done = subprocess.run([*command, gateway.url], env=given, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=DEADLINE, text=True)
            code, said = done.returncode, done.stdout
        except subprocess.TimeoutExpired as late:
            code, said = 1, f"{late.stdout or ''}\n{command[-1]}: not done after {DEADLINE} s"
        if code != 0:
            said += f"\nThe gateway's log ends with:\n{gateway.log()[-2000:]}"
    print(f"{said.strip()} ({time.monotonic() - began:.0f} s)", flush=True)
    return code


def main():
    koboshi, python, modules, *names = sys.argv[1:]
    os.environ["KOBOSHI_NODE_MODULES"] = str(pathlib.Path(modules).resolve())
    dialects = os.environ.get("KOBOSHI_UPSTREAMS", ",".join(TABLE["upstreams"])).split(",")
    wanted = names or [f"{name}.{ending}" for name in SCRIPTS for ending in ("py", "mjs")]
    commands = [[python if name.endswith(".py") else "node", HERE / name] for name in wanted]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        codes = list(pool.map(lambda command: run(koboshi, command, dialects), commands))
    sys.exit(1 if any(codes) else 0)


main()
