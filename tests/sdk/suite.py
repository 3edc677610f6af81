"""What every SDK is promised, said once; the scripts beside it say how each SDK asks.

Whatever the primary does, the answer is whole, streamed or not, and is the one that a healthy primary would have given; tool calls have arguments that fit; where
no target can answer the SDK raises its own right exception and does not retry on top of us. An SDK is an object with `name`, `ends` (its words for the end of an
answer), `errors` (its exception for each fall), `ask`, and where it has them `count`, `models` and `model`.
"""
import base64
import concurrent.futures
import dataclasses
import json
import os
import sys
import time
import urllib.request

from table import TABLE, alone, slug

BASE = sys.argv[1]
KEY = os.environ["KOBOSHI_KEY"]
ADMIN_KEY = os.environ["KOBOSHI_ADMIN_KEY"]
# Seconds: no SDK with its default settings may be made to wait for longer, whatever the fault.
LONGEST_CALL = 12
DIALECTS = os.environ["KOBOSHI_UPSTREAMS"].split(",")
ASK = [("user", "Say something about falling down and getting up.")]
PARALLEL = [("user", "Book tables in parallel and tell me the time.")]
BOOK = {"name": "book_table", "description": "Books a table", "schema": {
    "type": "object", "properties": {"city": {"type": "string"}, "people": {"type": "integer"}}, "required": ["city", "people"], "additionalProperties": False}}
NOW = {"name": "what_time", "description": "Says what time it is", "schema": {"type": "object", "properties": {}, "additionalProperties": False}}
# One red pixel.
PIXEL = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==")


@dataclasses.dataclass
class Call:
    id: str
    name: str
    args: object


@dataclasses.dataclass
class Answer:
    text: str
    finish: str
    calls: list
    usage: tuple
    # As the SDK wants it back in the next request.
    turn: object = None


class Suite:
    def __init__(self, sdk):
        self.sdk, self.checked, self.wrongs = sdk, 0, []

    def check(self, ok, what):
        self.checked += 1
        if not ok:
            raise AssertionError(what)

    def case(self, what, run, *given, **more):
        """One case; the others go on if it does not hold."""
        try:
            run(*given, **more)
        except Exception as wrong:
            said = str(wrong) if isinstance(wrong, AssertionError) else f"{type(wrong).__name__}: {wrong}"
            self.wrongs.append(f"{what}: {said[:1500]}")

    def run(self):
        for dialect in DIALECTS:
            model = f"{dialect}.ok"
            for case in (self.text, self.images, self.structured, self.tools, self.thinking):
                for stream in (False, True):
                    self.case(f"{model} {case.__name__}{' streamed' if stream else ''}", case, model, stream)
            self.case(f"{dialect} falling", self.falling, dialect)
            self.errors(dialect)
        model = f"{DIALECTS[0]}.ok"
        for more in (self.counts, self.lists):
            self.case(more.__name__, more, model)
        for more in getattr(self.sdk, "more", []):
            self.case(more.__name__, more, self, model)
        for wrong in self.wrongs:
            print(f"{self.sdk.name}: WRONG: {wrong}")
        print(f"{self.sdk.name}: {self.checked} checks, {len(self.wrongs)} cases wrong, upstreams {', '.join(DIALECTS)}")
        sys.exit(1 if self.wrongs else 0)

    def text(self, model, stream):
        ask, check = self.sdk.ask, self.check
        whole = ask(model, ASK)
        check(len(whole.text) > 40, f"too little to compare: {whole}")
        said = ask(model, ASK, stream=stream)
        check((said.text, said.finish) == (whole.text, self.sdk.ends["stop"]) and min(said.usage) > 0, f"{said}, not {whole}")
        short = ask(model, ASK, stream=stream, most=3)
        check(short.finish == self.sdk.ends["length"] and whole.text.startswith(short.text.strip()), f"{short} though three tokens were the limit")
        talk = [*ASK, ("answer", said), ("user", "And then?")]
        check(len(ask(model, talk, system="You are a doll that always gets up.", stream=stream).text) > 40, "no second answer")

    def images(self, model, stream):
        said = self.sdk.ask(model, [("image", "What is on this picture?", PIXEL)], stream=stream)
        self.check(len(said.text) > 20, f"nothing said of a picture: {said}")

    def structured(self, model, stream):
        given = json.loads(self.sdk.ask(model, ASK, schema=BOOK["schema"], stream=stream).text)
        self.check(set(given) == {"city", "people"} and isinstance(given["people"], int), f"{given} does not fit the schema")

    def tools(self, model, stream):
        """A loop: several calls at once, one of them without arguments, their results, the words at the end."""
        ask, check = self.sdk.ask, self.check
        called = ask(model, PARALLEL, tools=[BOOK, NOW], stream=stream)
        by_name = {call.name: call for call in called.calls}
        check(len(called.calls) == 2 and set(by_name) == {"book_table", "what_time"}, f"{called}")
        check(called.finish == self.sdk.ends["tools"], f"ended with {called.finish}")
        check(isinstance(by_name["book_table"].args.get("people"), int) and by_name["what_time"].args == {}, f"{called.calls}")
        check(len({call.id for call in called.calls}) == 2, f"calls share an id: {called.calls}")
        results = [(call, f"result-of-{call.name}") for call in called.calls]
        said = ask(model, [*PARALLEL, ("answer", called), ("results", results)], tools=[BOOK, NOW], stream=stream)
        check(said.finish == self.sdk.ends["stop"] and not said.calls and "result-of-" in said.text, f"after the results came {said}")
        forced = ask(model, ASK, tools=[BOOK, NOW], must="what_time", stream=stream)
        check([(call.name, call.args) for call in forced.calls] == [("what_time", {})], f"{forced}")

    def thinking(self, model, stream):
        """A model that thinks first: its thoughts are no words of the answer, and what falls behind them is caught all the same."""
        whole = self.sdk.ask(model, ASK).text
        said = self.sdk.ask(model, ASK, think=True, stream=stream)
        self.check(said.text == whole and said.finish == self.sdk.ends["stop"], f"{said}, not {whole!r}")
        for fall in TABLE["falls"]["thinking"]:
            said = self.sdk.ask(model.replace(".ok", f".fall.{slug(fall)}"), ASK, tools=[BOOK], think=True, stream=stream)
            self.check(said.finish == self.sdk.ends["tools"] and [isinstance(call.args.get("people"), int) for call in said.calls] == [True], f"{fall}: {said}")
        talk = [*ASK, ("answer", said), ("results", [(call, "result-of-it") for call in said.calls])]
        said = self.sdk.ask(model, talk, tools=[BOOK], think=True, stream=stream)
        self.check("result-of-it" in said.text, f"after the results came {said}")

    def falling(self, dialect):
        whole = self.sdk.ask(f"{dialect}.ok", ASK).text
        jobs = [(fall, stream, self.fallen, whole) for stream, falls in ((False, "whole"), (True, "stream")) for fall in TABLE["falls"][falls]]
        jobs += [(fall, stream, self.mended, None) for fall in TABLE["falls"]["tools"] for stream in (False, True)]
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            for fall, stream, case, whole in jobs:
                pool.submit(self.case, f"{dialect}/{fall} {case.__name__}{' streamed' if stream else ''}", case, f"{dialect}.fall.{slug(fall)}", whole, stream)

    def fallen(self, model, whole, stream):
        said = self.sdk.ask(model, ASK, stream=stream)
        self.check((said.text, said.finish) == (whole, self.sdk.ends["stop"]), f"{said}, not {whole!r}")

    def mended(self, model, _, stream):
        said = self.sdk.ask(model, ASK, tools=[BOOK], stream=stream)
        fits = [call.name == "book_table" and isinstance(call.args["people"], int) for call in said.calls]
        self.check(said.finish == self.sdk.ends["tools"] and fits == [True], f"{said}")

    def errors(self, dialect):
        for stream in (False, True):
            streamed = " streamed" if stream else ""
            for fall in TABLE["filtered"]:
                self.case(f"{dialect}/{fall}{streamed}", self.filtered, alone(dialect, fall, stream), stream)
            faults = {fall: fall for fall in TABLE["errors"]} | TABLE["alike"] | (TABLE["waits"] if dialect == DIALECTS[0] else {})
            if stream:
                # A stream that breaks in the middle is no error before the answer: `broken` has it.
                faults = {fall: like for fall, like in faults.items() if fall not in TABLE["only_whole"]}
            if dialect == "gemini":
                # Google has no error for a prompt that it blocks: a good answer says it.
                del faults["filter-400"]
            cases = [(fall, like, alone(dialect, fall, stream), {}) for fall, like in faults.items()]
            cases += [("no model", "no model", "no-such-model-at-all", {}), ("no key", "no key", f"{dialect}.ok", {"key": "another-key"}),
                      ("bad request", "bad request", f"{dialect}.ok", {"broken": True}),
                      ("no images", "bad request", f"{dialect}.blind", {"turns": [("image", "What is on this picture?", PIXEL)]})]
            for what, like, model, more in cases:
                # The second time the gateway may know the fault and ask no target, and later its breaker is open: the SDK must not notice.
                for nth in range(1, 7 if what in TABLE["often"] and dialect == DIALECTS[0] else 3):
                    self.case(f"{dialect}/{what} error{streamed}, request {nth}", self.wrong, like, model, stream, **more)
        for fall in TABLE["broken"]:
            self.case(f"{dialect}/{fall} error in the stream", self.broken, alone(dialect, fall, True))

    def filtered(self, model, stream):
        """That a content filter ended an answer is a finish reason behind the text, and no exception."""
        said = self.sdk.ask(model, ASK, stream=stream)
        self.check(said.finish == self.sdk.ends["filter"] and len(said.text) > 0, f"{said}")

    def wrong(self, what, model, stream, turns=ASK, **more):
        before, began = attempts(), time.monotonic()
        try:
            self.sdk.ask(model, turns, stream=stream, **more)
        except self.sdk.base as error:
            name, wanted = type(error).__name__, self.sdk.errors[what]
            self.check(name == wanted, f"{name}, not {wanted}: {error}")
            self.check("KBS-" in str(self.sdk.told(error)), f"{self.sdk.told(error)}")
        else:
            raise AssertionError("no error")
        took = time.monotonic() - began
        self.check(took < LONGEST_CALL, f"the call took {took:.1f} s")
        self.check(attempts() - before <= 3, "the SDK retried on top of us")

    def broken(self, model):
        began = []
        try:
            said = self.sdk.ask(model, ASK, stream=True, began=began)
        except self.sdk.base as error:
            self.check(began, f"no word of it came before {error!r}")
            self.check(type(error).__name__ in self.sdk.in_stream, f"{type(error).__name__}: {error}")
            self.check("KBS-" in str(self.sdk.told(error)), f"{self.sdk.told(error)}")
        else:
            raise AssertionError(f"a broken stream looks whole: {said}")

    def counts(self, model):
        if hasattr(self.sdk, "count"):
            short, long = self.sdk.count(model, ASK), self.sdk.count(model, [("user", "to fall and to get up again " * 50)])
            self.check(0 < short < long, f"{short} and {long} tokens were counted")

    def lists(self, model):
        if hasattr(self.sdk, "models"):
            self.check(self.sdk.model(model) == model, f"{model} cannot be looked up")
            self.check(model in self.sdk.models(), f"{model} is not listed")


def attempts():
    with urllib.request.urlopen(urllib.request.Request(f"{BASE}/koboshi/targets", headers={"authorization": f"Bearer {ADMIN_KEY}"}), timeout=10) as answer:
        return sum(known["attempts"] for known in json.load(answer)["targets"])


def parsed(arguments):
    """Arguments as an agent reads them: none at all means none."""
    return json.loads(arguments) if arguments else {}
