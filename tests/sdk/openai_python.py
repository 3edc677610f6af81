"""The official Python SDK through the gateway, while the primary falls in every way.

Promises: a whole answer whatever the primary does, streamed or not; tool calls whose arguments are valid; the SDK's own right exception where nobody can answer, and
no retry of the SDK's on top of ours. Usage: openai_python.py BASE_URL
"""
import json
import pathlib
import sys
import urllib.request

import openai

base = sys.argv[1]
falls = json.loads((pathlib.Path(__file__).parent / "falls.json").read_text())
client = openai.OpenAI(base_url=base, api_key="not-needed", timeout=60)
ASK = [{"role": "user", "content": "Say something about falling down and getting up."}]
TOOLS = [{"type": "function", "function": {"name": "book_table", "description": "Books a table", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}, "people": {"type": "integer"}}, "required": ["city", "people"], "additionalProperties": False}}}]
checked = 0


def check(ok, what):
    global checked
    checked += 1
    if not ok:
        sys.exit(f"openai (Python) {openai.__version__}: {what}")


def streamed(model, **more):
    text, finish, calls = "", None, {}
    for chunk in client.chat.completions.create(model=model, messages=ASK, stream=True, **more):
        for choice in chunk.choices:
            text += choice.delta.content or ""
            finish = choice.finish_reason or finish
            for call in choice.delta.tool_calls or []:
                known = calls.setdefault(call.index, ["", ""])
                known[0] += call.function.name or ""
                known[1] += call.function.arguments or ""
    return text, finish, calls


def attempts(target):
    with urllib.request.urlopen(base.removesuffix("/v1") + "/koboshi/targets") as answer:
        return next((t["attempts"] for t in json.load(answer)["targets"] if t["target"] == target), 0)


whole = client.chat.completions.create(model="sim/ok", messages=ASK).choices[0].message.content
check(len(whole) > 40, "the simulated provider says too little to compare")
for fall in falls["whole"]:
    answer = client.chat.completions.create(model=f"fall:{fall}", messages=ASK)
    check(answer.choices[0].message.content == whole, f"{fall}: another answer")
for fall in falls["stream"]:
    text, finish, _ = streamed(f"fall:{fall}")
    check((text, finish) == (whole, "stop"), f"{fall}: streamed {text!r}, {finish}")
for fall in falls["tools"]:
    call = client.chat.completions.create(model=f"fall:{fall}", messages=ASK, tools=TOOLS).choices[0].message.tool_calls[0]
    given = json.loads(call.function.arguments)
    check(call.function.name == "book_table" and isinstance(given["people"], int), f"{fall}: {call}")
    _, finish, calls = streamed(f"fall:{fall}", tools=TOOLS)
    given = json.loads(calls[0][1])
    check(finish == "tool_calls" and calls[0][0] == "book_table" and isinstance(given["people"], int), f"{fall}: {calls}")
usage = None
for chunk in client.chat.completions.create(model="fall:cut?after=6", messages=ASK, stream=True, stream_options={"include_usage": True}):
    usage = chunk.usage or usage
check(usage is not None and usage.completion_tokens > 0, "no usage though it was asked for")
for fall, name in falls["errors"].items():
    before = attempts(f"sim/{fall}")
    try:
        client.chat.completions.create(model=f"sim/{fall}", messages=ASK)
        check(False, f"{fall}: no error")
    except openai.APIStatusError as error:
        check(type(error).__name__ == name, f"{fall}: {type(error).__name__}, not {name}")
        check(error.body["koboshi"]["errorCode"].startswith("KBS-"), f"{fall}: {error.body}")
    check(attempts(f"sim/{fall}") - before <= 3, f"{fall}: the SDK retried on top of us")
try:
    streamed("sim/cut?after=6")
    check(False, "a cut stream looks whole")
except openai.APIError as error:
    check("koboshi" in (error.body or {}), f"cut: {error!r}")
check(len(client.embeddings.create(model="sim/ok", input="hello").data[0].embedding) > 0, "no embedding")
check(any(model.id == "sim/ok" for model in client.models.list()), "sim/ok is not listed")
print(f"openai (Python) {openai.__version__}: {checked} checks hold")
