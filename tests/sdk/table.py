"""What is tested against what: table.json, and the names of it as routes of a gateway.

A name says what stands behind it: `chat.ok` is a healthy upstream that speaks chat completions, `chat.fall.cut-after-6` one that falls in that way and a healthy
one of the next dialect behind it, `chat.only.cut-after-6` the same with no target behind it (and `chat.only-streamed`: what one case has done to it, another must not meet). The names have no slash and no question mark: Google's clients put
them into a path. A dialect of upstreams is switched on by its name in `upstreams`.
"""
import hashlib
import json
import pathlib
import re

TABLE = json.loads((pathlib.Path(__file__).parent / "table.json").read_text())
# The key that clients of the tests have.
KEY = "a-key-of-the-tests"
ADMIN_KEY = "an-admin-key-of-the-tests"
# What fails before a simulated provider is asked has a provider of its own: nothing listens there, or an operator has cooled it.
ELSEWHERE = ("refused", "cooled")
TIMEOUTS = {"connect": "1s", "first": "1s", "idle": "500ms", "whole": "1s", "total": "20s"}


def upstream(dialect):
    """A simulated provider that speaks only this: left alone it would speak whatever the client does."""
    return {"kind": "sim", "dialects": [dialect], "timeouts": TIMEOUTS}


def absent(dialect):
    """A provider of this dialect at an address where nothing listens."""
    kind = {"messages": "anthropic", "gemini": "gemini"}.get(dialect)
    kinds = {"kind": kind} if kind else {"kind": "openai", "dialects": [dialect]}
    return {**kinds, "base_url": "http://127.0.0.1:1/v1beta" if kind == "gemini" else "http://127.0.0.1:1/v1", "keys": ["a-key"], "timeouts": TIMEOUTS}


def cooled(dialects):
    """The keys that an operator cools before the tests begin."""
    return [f"provider:cooled-{dialect}" for dialect in dialects]


def slug(fall):
    return re.sub(r"[^a-z0-9]+", "-", fall)


def target(dialect, fall, seed):
    """The target that fails so. A name that no provider has would be refused in the config: the client's own name stands for it."""
    if fall == "no-such-model":
        return dialect + "/{model}"
    if fall in ELSEWHERE:
        return f"{fall}-{dialect}/ok?seed={seed}"
    return f"{dialect}/{fall}{'&' if '?' in fall else '?'}seed={seed}"


def alone(dialect, fall, stream):
    """The route to one that falls, with no target behind it."""
    return f"{dialect}.only{'-streamed' if stream else ''}.{slug(fall)}"


def config(dialects=None):
    dialects = dialects or TABLE["upstreams"]
    falls = sorted({fall for falls in TABLE["falls"].values() for fall in falls})
    # A gateway with one real provider would send it every model that has no route.
    routes, providers = {}, {"absent": absent("chat")}
    for at, dialect in enumerate(dialects):
        other = dialects[(at + 1) % len(dialects)]
        providers |= {dialect: upstream(dialect), f"cooled-{dialect}": upstream(dialect), f"refused-{dialect}": absent(dialect)}
        routes[f"{dialect}.ok"] = [f"{dialect}/ok"]
        routes[f"{dialect}.blind"] = [f"{dialect}/ok?seed=3"]
        routes |= {f"{dialect}.fall.{slug(fall)}": [f"{dialect}/{fall}", f"{other}/ok"] for fall in falls}
        for stream, seed in ((False, 1), (True, 2)):
            # The seed changes nothing here but the name, and so the target.
            routes |= {alone(dialect, fall, stream): [target(dialect, fall, seed)] for fall in [*TABLE["errors"], *TABLE["alike"], *TABLE["waits"], *TABLE["filtered"], *TABLE["broken"]]}
    return {
        "store": "memory",
        "keys": {"tests": {"sha256": hashlib.sha256(KEY.encode()).hexdigest()}},
        "admin": {"sha256": hashlib.sha256(ADMIN_KEY.encode()).hexdigest()},
        "providers": providers,
        # A model that takes no images: the gateway knows it and asks no target.
        "models": {f"{dialect}/ok?seed=3": {"images": False} for dialect in dialects},
        "retry": {"initial_delay": "10ms", "max_delay": "50ms"},
        "routes": routes,
    }
