"""What is measured while the primary falls: how soon the spare answers, and what an outage costs.

Every probe has a primary of its own, so each finds a gateway that knows nothing yet. The outage is the other case: one primary, and
whatever the gateway learns about it.
"""
import json
import subprocess
import threading
import time

from .measure import Measure
from .peers import SPARE, STEADY, WAYS, fallen

BEFORE = 5


def failover(measure: Measure, machine, gateway, count):
    """A row for each way to fall."""
    target = gateway.start(machine, measure.mock, "faults", count)
    told = {}
    try:
        for way in WAYS:
            name = fallen(way, "{i}")
            target.headers = gateway.headers(measure.mock, name)
            # Waiting takes no processor time, so all may wait at the same time.
            together = count if way == "hang" else min(count, gateway.together)
            measure.mock.ask("/forget")
            rows = measure.load(target, "probe", name, "--count", count, "--together", together, "--timeout", 90, stream=True,
                                patience=2000)["rows"]
            time.sleep(0.3)
            calls = measure.mock.stats()["calls"]
            told[way] = {"rows": rows, "primary": sum(times for model, times in calls.items() if model.startswith(f"{way}-r")),
                         "spare": calls.get(SPARE, 0)}
    finally:
        machine.stop(target.process)
    return told


def outage(measure: Measure, machine, gateway, args, mood):
    """Requests at a steady rate while the primary is away for a time."""
    target = gateway.start(machine, measure.mock, "faults", mood=mood)
    target.headers = gateway.headers(measure.mock, STEADY)
    measure.mock.ask("/forget")
    # From its first outage on the mock notes when a model is asked.
    measure.mock.ask(f"/outage?model={STEADY}&on=0")
    seconds = BEFORE + args.outage_seconds + args.outage_after
    command = measure.command(target, "rate", STEADY, "--rate", args.outage_rate, "--seconds", seconds, "--warm", 0, "--timeout", 90, "--rows",
                              stream=True)
    try:
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as load:
            told = []
            reader = threading.Thread(target=lambda: told.append(load.stdout.read()))
            reader.start()
            try:
                time.sleep(BEFORE)
                measure.mock.ask(f"/outage?model={STEADY}&way={args.outage_way}&on=1")
                begin = time.monotonic_ns()
                time.sleep(args.outage_seconds)
                measure.mock.ask(f"/outage?model={STEADY}&on=0")
                end = time.monotonic_ns()
                load.wait(seconds + 120)
            finally:
                load.kill()
                reader.join()
        stats = measure.mock.stats()
    finally:
        machine.stop(target.process)
    rows = json.loads(told[0])["rows"]
    asked = sorted(stats["asked"][STEADY])
    return {"begin": begin, "end": end, "rate": args.outage_rate, "way": args.outage_way,
            "rows": [{key: row[key] for key in ("due", "status", "first_us", "total_us", "whole", "error")} for row in rows],
            "asked": asked, "spare": stats["calls"].get(SPARE, 0)}
