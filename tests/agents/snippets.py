"""Runs the snippets of docs/agents as they stand, against the gateway that the pages describe: a primary that falls and a healthy second.

Usage: snippets.py KOBOSHI SDK_FOLDER [AGENTS_FOLDER]   Without the last only those marked `quick`.
A mark in a comment before a block says what is done with it: `run: TIER WHERE [tools]` or `file: PATH`, a file in the home of what runs on the same page.
"""
import os
import pathlib
import re
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "sdk"))
from gateway import Gateway  # noqa: E402

from process import run  # noqa: E402

PAGES = HERE.parent.parent / "docs" / "agents"
BLOCK = re.compile(r"<!-- (run|file): (.*?) -->\n```\w+\n(.*?)```", re.DOTALL)
FALLS = {"quick": ["fail-503"], "long": ["fail-503", "rate-429?retry_after=60", "cut?after=5", "broken-tool-args?form=python&always=yes"]}
DEADLINE = 120
# Nothing is sent elsewhere.
QUIET = {"IS_SANDBOX": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1", "LANGSMITH_TRACING": "false",
         "OTEL_SDK_DISABLED": "true", "OPENCODE_DISABLE_AUTOUPDATE": "1", "AIDER_ANALYTICS": "false", "AIDER_CHECK_UPDATE": "false"}


def chain(page):
    """The targets of the page's own config, or of the one that all pages share: the first one falls, the last one answers."""
    shared = (PAGES / "README.md").read_text()
    targets = re.findall(r"^ +- (sim/\S+)", page if "sim/fail-503" in page else shared, re.MULTILINE)
    if len(targets) != 2 or targets[0] != "sim/fail-503":
        sys.exit(f"the config of the page has the targets {targets}")
    return targets


def config(targets, fall):
    """As on the page, with another fall of the first target, which calls tools if the second one does."""
    calls = targets[1].partition("?")[2]
    first = f"sim/{fall}" if not calls or "tool" in fall else f"sim/{fall}{'&' if '?' in fall else '?'}{calls}"
    return {"store": "memory", "retry": {"initial_delay": "10ms", "max_delay": "50ms"}, "routes": {"assistant": [first, targets[1]]}}


def command(where, folder, text, sdk, agents):
    """The snippet as a program."""
    if where in ("python", "strands", "langchain"):
        program = sdk / "venv/bin/python" if where == "python" else agents / where / "bin/python"
        return [program, "-c", text]
    if where == "node":
        modules = sdk if agents is None else agents
        (folder / "node_modules").symlink_to(modules / "node_modules")
        (folder / "snippet.mjs").write_text(text)
        return ["node", "snippet.mjs"]
    return ["sh", "-e", "-c", text]


def tried(gateway, where, text, files, sdk, agents):
    with tempfile.TemporaryDirectory(prefix="snippet-") as home:
        home = pathlib.Path(home)
        for path, content in files:
            (home / path).parent.mkdir(parents=True, exist_ok=True)
            (home / path).write_text(content.replace("http://127.0.0.1:4141", gateway.url))
        folder = home / "work"
        folder.mkdir()
        path = [f"{agents}/node_modules/.bin", f"{agents}/aider/bin"] if agents else []
        given = {**QUIET, "HOME": str(home), "PATH": ":".join([*path, os.environ["PATH"]])}
        return run(command(where, folder, text.replace("http://127.0.0.1:4141", gateway.url), sdk, agents), folder, given, DEADLINE)


def main():
    koboshi, sdk, *agents = sys.argv[1:]
    sdk, agents = pathlib.Path(sdk).resolve(), pathlib.Path(agents[0]).resolve() if agents else None
    count, wrong = 0, 0
    for page in sorted(PAGES.glob("*.md")):
        blocks = [(found[1], found[2], found[3], page.read_text()[: found.start()].count("\n") + 1) for found in BLOCK.finditer(page.read_text())]
        files = [(path, text) for kind, path, text, _ in blocks if kind == "file"]
        for (tier, where, *more), text, line in ((mark.split(), text, line) for kind, mark, text, line in blocks if kind == "run"):
            if (tier == "long") != (agents is not None):
                continue
            for fall in FALLS[tier]:
                with Gateway(koboshi, config(chain(page.read_text()), fall)) as gateway:
                    ran = tried(gateway, where, text, files, sdk, agents)
                    metrics = gateway.metrics()
                whole, failed = (metrics.get(f'koboshi_answers_total{{kind="{kind}"}}', 0) for kind in ("whole", "failed"))
                calls = sum(count for name, count in metrics.items() if name.startswith("koboshi_tool_calls_total"))
                good = ran.code == 0 and ran.out.strip() and whole > 0 and failed == 0 and (not more or (calls > 0 and whole > 1))
                count += 1
                print(f"{'ok' if good else 'WRONG':5} {page.name}, line {line}, {where}, {fall} ({ran.seconds:.1f} s)", flush=True)
                if not good:
                    wrong += 1
                    print(f"  exit {ran.code}, answers: {whole:.0f} whole, {failed:.0f} failed, {calls:.0f} tool calls\n{ran.out[-3000:]}\n{gateway.ended[-1500:]}", flush=True)
    if count == 0:
        sys.exit("no snippet was found")
    print(f"{count} runs of snippets, {wrong} wrong")
    sys.exit(1 if wrong else 0)


main()
