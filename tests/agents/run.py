"""Real coding agents finish a task through a gateway whose primary falls, and stop at once where every target is in cooldown.

Usage: run.py KOBOSHI NODE_MODULES [AGENT...]   NODE_MODULES is where package.json of this folder was installed.
The dialects of the upstreams are those of tests/sdk/table.json, or of KOBOSHI_UPSTREAMS.
"""
import os
import pathlib
import re
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "sdk"))
from gateway import Gateway  # noqa: E402
from table import TABLE, slug, upstream  # noqa: E402

from clis import CLIS, prompt  # noqa: E402
from process import run  # noqa: E402

# How the primary falls, and who stands behind it; the one behind says as many words before its calls.
FALLS = {
    "nothing falls": ("ok", "ok"),
    "throttled": ("rate-429?retry_after=60", "ok"),
    "down": ("fail-503", "ok"),
    "overloaded, one request of two": ("overloaded?p=0.5", "ok"),
    "the connection dies": ("reset", "ok"),
    "a cut before the text": ("cut?after=1&say=8", "ok?say=8"),
    "a cut in the text": ("cut?after=5&say=12", "ok?say=12"),
    "an error in the stream": ("in-band-error?after=1", "ok"),
    "a cut in a tool call": ("cut-tool?p=0.5", "ok"),
    "arguments that have one reading": ("broken-tool-args?form=trailing-comma&always=yes", "ok"),
    "arguments that must be asked for again": ("broken-tool-args?form=truncated", "ok"),
}
# An agent that is told to wait for this long must not wait, but say so.
RESTS = {"a limit": "rate-429?retry_after=600", "the day's allowance": "quota"}
# What no waiting mends must end it too, without a time.
ENDS = {"a dead key": "auth-401", "an empty account": "billing"}
TEXT = "up again"
# A run takes a few seconds.
DEADLINE, AT_ONCE = 90, 30
TIMEOUTS = {"connect": "2s", "first": "4s", "idle": "2s", "whole": "4s", "total": "30s"}


def config(dialects):
    routes = {}
    for at, dialect in enumerate(dialects):
        other = dialects[(at + 1) % len(dialects)]
        routes |= {f"{dialect}.{slug(name)}": [f"{dialect}/{primary}", f"{other}/{second}"] for name, (primary, second) in FALLS.items()}
        routes |= {f"{dialect}.rests.{slug(name)}": [f"{dialect}/{fall}"] for name, fall in (RESTS | ENDS).items()}
    providers = {dialect: upstream(dialect) | {"timeouts": TIMEOUTS} for dialect in dialects}
    return {"store": "memory", "providers": providers, "retry": {"initial_delay": "10ms", "max_delay": "50ms"}, "routes": routes}


def started(cli, gateway, model, deadline):
    """One run in a home of its own: what it did, what it left in its folder."""
    # Codex makes no helpers below the folder for temporary files.
    with tempfile.TemporaryDirectory(prefix="agent-", dir=os.environ.get("KOBOSHI_AGENT_HOMES")) as home:
        home = pathlib.Path(home)
        work = home / "work"
        work.mkdir()
        given = {"HOME": str(home), **cli.prepare(home, gateway.url, model, "any-key")}
        task = prompt(work / "fallen.txt", TEXT, "cp fallen.txt copy.txt")
        ran = run(cli.command(task), work, given, deadline)
        return ran, {file.name: file.read_text() for file in work.iterdir() if file.is_file()}


def counted(gateway, *names):
    """What the gateway has counted under these names so far."""
    return sum(value for name, value in gateway.metrics().items() if name.startswith(names))


def asked(gateway):
    """How many requests were answered, in whatever way."""
    return counted(gateway, "koboshi_answers_total")


def fallen(gateway):
    """How often something fell or had to be mended."""
    mended = [f'koboshi_tool_calls_total{{kind="{outcome}"}}' for outcome in ("repaired", "reasked")]
    return counted(gateway, "koboshi_faults_total", *mended)


def finishes(cli, gateway, model):
    before = fallen(gateway)
    ran, files = started(cli, gateway, model, DEADLINE)
    done, said = cli.read(ran.out)
    if ran.code is None:
        return ran, f"not done after {DEADLINE} s"
    if ran.code != 0 or not done:
        return ran, f"exit {ran.code}: {said}"
    # A patch, as Codex writes it, ends with a line break.
    if [files.get(name, "").rstrip() for name in ("fallen.txt", "copy.txt")] != [TEXT] * 2:
        return ran, f"it says it is done, and left {files}: {said}"
    if (fallen(gateway) > before) == model.endswith("nothing-falls"):
        return ran, f"{fallen(gateway) - before:.0f} falls: this case is not what it says"
    return ran, None


def stops(cli, gateway, model):
    before = asked(gateway)
    ran, _ = started(cli, gateway, model, AT_ONCE)
    count = asked(gateway) - before
    done, said = cli.read(ran.out)
    if ran.code is None:
        return ran, f"did not stop in {AT_ONCE} s, {count:.0f} requests"
    if ran.code == 0 or done:
        return ran, f"exit {ran.code}, as if nothing were wrong: {said}"
    if count > 2:
        return ran, f"asked {count:.0f} times"
    if model.split(".")[-1] in map(slug, RESTS) and not re.search(cli.time, said):
        return ran, f"says no time: {said}"
    return ran, None


def main():
    koboshi, modules, *names = sys.argv[1:]
    # The Node of package.json comes first: the machine's own may be too old.
    os.environ["PATH"] = f"{pathlib.Path(modules).resolve()}/node_modules/.bin:{os.environ['PATH']}"
    dialects = os.environ.get("KOBOSHI_UPSTREAMS", ",".join(TABLE["upstreams"])).split(",")
    wrong = 0
    for cli in (CLIS[name] for name in names or CLIS):
        with Gateway(koboshi, config(dialects)) as gateway, tempfile.TemporaryDirectory(prefix="agent-") as home:
            version = run([cli.name, "--version"], home, {"HOME": home}, DEADLINE).out.strip().splitlines()[-1:]
            cases = [(f"{dialect}, {name}", finishes, f"{dialect}.{slug(name)}") for dialect in dialects for name in FALLS]
            # The second time no target is asked, and the gateway itself says how long.
            cases += [(f"{dialect}, {name}, {when}", stops, f"{dialect}.rests.{slug(name)}") for dialect in dialects for name in RESTS | ENDS for when in ("just said", "known")]
            for what, check, model in cases:
                ran, trouble = check(cli, gateway, model)
                print(f"{'WRONG' if trouble else 'ok':5} {cli.name} {' '.join(version)}: {what} ({ran.seconds:.1f} s){': ' + trouble if trouble else ''}", flush=True)
                if trouble:
                    wrong += 1
                    print(f"  printed at the end:\n{ran.out[-1500:]}\n  the gateway's log:\n{gateway.log()[-1500:]}", flush=True)
    print(f"{wrong} cases of real agents wrong" if wrong else "every agent finished, and stopped where it should")
    sys.exit(1 if wrong else 0)


main()
