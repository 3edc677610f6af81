"""The four dialects: where each is asked and how, and what is measured of them.

The name of a model says which dialect the provider is to be asked in (`to-messages-ok`); a proxy that decides nothing passes on the
client's own. So nginx has the four rows where both sides speak the same, and koboshi all sixteen.
"""
import json

SYSTEM = "You are a helpful assistant."
TASK = "Say in a sentence why a doll stands up again."


class Dialect:
    def __init__(self, name, path, body):
        self.name, self.path, self.body = name, path, body

    def url(self, base, model, stream=False):
        verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
        return base + self.path.format(model=model, verb=verb)

    def request(self, model, stream=False):
        return json.dumps(self.body(model, stream), separators=(",", ":"))


def chat(model, stream):
    return {"model": model, "stream": stream, "max_tokens": 256,
            "messages": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": TASK}]}


def messages(model, stream):
    return {"model": model, "stream": stream, "max_tokens": 256, "system": SYSTEM, "messages": [{"role": "user", "content": TASK}]}


def responses(model, stream):
    return {"model": model, "stream": stream, "max_output_tokens": 256, "instructions": SYSTEM, "store": False, "input": TASK}


def gemini(model, stream):
    return {"systemInstruction": {"parts": [{"text": SYSTEM}]}, "generationConfig": {"maxOutputTokens": 256},
            "contents": [{"role": "user", "parts": [{"text": TASK}]}]}


CHAT = Dialect("chat", "/v1/chat/completions", chat)
DIALECTS = (CHAT, Dialect("messages", "/v1/messages", messages), Dialect("responses", "/v1/responses", responses),
            Dialect("gemini", "/v1beta/models/{model}:{verb}", gemini))


def visit(measure, machine, gateways):
    """Gateways in every dialect that they can be asked in, each beside the mock alone; and one right after the other, since what a
    dialect costs here is given as a multiple of what it costs there."""
    running, told = [], {}
    try:
        for gateway in gateways:
            running.append(gateway.start(machine, measure.mock, "dialects"))
            told[gateway.name] = {}
        for client in DIALECTS:
            for provider in (client, *(one for one in DIALECTS if one is not client)):
                able = [target for target in running if client is provider or target.gateway.translates]
                for target in able:
                    target.dialect, target.prefix = client, f"to-{provider.name}-"
                    told[target.name][f"{client.name} {provider.name}"] = {}
                for part, work in parts(measure, client is provider):
                    for target in able:
                        told[target.name][f"{client.name} {provider.name}"][part] = work(target)
    finally:
        for target in running:
            machine.stop(target.process)
    return told


def parts(measure, latency):
    """What is measured of a pair."""
    yield "throughput", measure.throughput
    if latency:
        yield "latency", lambda target: measure.latency(target, target.gateway.rate, waits=(0,))
    yield "streams", lambda target: measure.streams(target, target.gateway.stream_rate)
