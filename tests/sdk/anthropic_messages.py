"""The official Python SDK of Anthropic. Usage: anthropic_messages.py GATEWAY"""
import base64

import anthropic
import pydantic

from suite import ASK, BASE, BOOK, KEY, Answer, Call, Suite, parsed


class Sdk:
    name = f"anthropic {anthropic.__version__} (Python)"
    ends = {"stop": "end_turn", "length": "max_tokens", "tools": "tool_use", "filter": "refusal"}
    base = anthropic.APIError
    errors = {"fail-500": "InternalServerError", "fail-503": "ServiceUnavailableError", "overloaded": "OverloadedError", "rate-429?retry_after=120": "RateLimitError",
              "context": "BadRequestError", "filter-400": "BadRequestError", "auth-401": "InternalServerError", "no model": "NotFoundError", "no key": "AuthenticationError",
              "bad request": "BadRequestError"}
    in_stream = {"APIStatusError", "InternalServerError"}

    def __init__(self):
        self.client = anthropic.Anthropic(base_url=BASE, api_key=KEY, timeout=60)

    def told(self, error):
        return error.body

    def given(self, turns, system=None, tools=(), must=None, schema=None, broken=False):
        given = {"messages": [message for turn in turns for message in self.messages(*turn)]}
        if broken:
            given["messages"] = "not a list"
        if system:
            given["system"] = system
        if tools:
            given["tools"] = [{"name": tool["name"], "description": tool["description"], "input_schema": tool["schema"]} for tool in tools]
        if must:
            given["tool_choice"] = {"type": "tool", "name": must}
        if schema:
            given["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
        return given

    def ask(self, model, turns, stream=False, most=None, key=None, began=None, think=False, **more):
        given = {"model": model, "max_tokens": most or 4096, **self.given(turns, **more)}
        if think:
            given["thinking"] = {"type": "enabled", "budget_tokens": 2048}
        client = self.client.with_options(api_key=key) if key else self.client
        if stream:
            return self.streamed(client.messages.create(stream=True, **given), began)
        return self.read(client.messages.create(**given))

    def read(self, said):
        text = "".join(block.text for block in said.content if block.type == "text")
        calls = [Call(block.id, block.name, block.input) for block in said.content if block.type == "tool_use"]
        return Answer(text, said.stop_reason, calls, (said.usage.input_tokens, said.usage.output_tokens), said.content)

    def streamed(self, events, began):
        """Joined by hand; the SDK's own joining is looked at in `helpers`."""
        blocks, finish, usage, last = {}, None, [0, 0], None
        for event in events:
            last = event.type
            match event.type:
                case "message_start":
                    usage[0] = event.message.usage.input_tokens
                case "content_block_start":
                    assert event.index == len(blocks), f"block {event.index} after {len(blocks)}"
                    blocks[event.index] = {"block": event.content_block, "text": ""}
                case "content_block_delta":
                    blocks[event.index]["text"] += getattr(event.delta, "text", None) or getattr(event.delta, "partial_json", None) or getattr(event.delta, "thinking", "")
                    blocks[event.index]["seal"] = getattr(event.delta, "signature", None)
                    if began is not None:
                        began.append(event)
                case "message_delta":
                    finish, usage[1] = event.delta.stop_reason, event.usage.output_tokens
                    usage[0] = event.usage.input_tokens or usage[0]
        assert last == "message_stop", f"the stream ended with {last}"
        turn, calls, text = [], [], ""
        for known in blocks.values():
            if known["block"].type == "text":
                text += known["text"]
                turn.append({"type": "text", "text": known["text"]})
            elif known["block"].type == "thinking":
                assert known["seal"], f"thoughts without a signature: {known}"
                turn.append({"type": "thinking", "thinking": known["text"], "signature": known["seal"]})
            elif known["block"].type == "tool_use":
                calls.append(Call(known["block"].id, known["block"].name, parsed(known["text"])))
                turn.append({"type": "tool_use", "id": calls[-1].id, "name": calls[-1].name, "input": calls[-1].args})
        return Answer(text, finish, calls, tuple(usage), turn)

    def messages(self, kind, *given):
        match kind:
            case "user":
                return [{"role": "user", "content": given[0]}]
            case "image":
                source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(given[1]).decode()}
                return [{"role": "user", "content": [{"type": "image", "source": source}, {"type": "text", "text": given[0]}]}]
            case "answer":
                return [{"role": "assistant", "content": given[0].turn}]
            case "results":
                return [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": text} for call, text in given[0]]}]

    def count(self, model, turns):
        return self.client.messages.count_tokens(model=model, **self.given(turns)).input_tokens

    def models(self):
        return [model.id for model in self.client.models.list()]

    def model(self, name):
        return self.client.models.retrieve(name).id


class Booking(pydantic.BaseModel):
    city: str
    people: int


def helpers(suite, model):
    """What the SDK itself makes of our events: its own parsing and its own joining of streams."""
    client = suite.sdk.client
    given = {"max_tokens": 1024, "messages": [{"role": "user", "content": ASK[0][1]}]}
    said = client.messages.parse(model=model, output_format=Booking, **given)
    suite.check(isinstance(said.parsed_output, Booking), f"parsed: {said}")
    with client.messages.stream(model=model.replace(".ok", ".fall.cut-after-6"), **given) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    suite.check(text == final.content[0].text == suite.sdk.ask(model, ASK).text and final.stop_reason == "end_turn", f"joined: {final}")
    tools = [{"name": BOOK["name"], "input_schema": BOOK["schema"]}]
    with client.messages.stream(model=model.replace(".ok", ".fall.broken-tool-args-form-python"), tools=tools, **given) as stream:
        call = next(block for block in stream.get_final_message().content if block.type == "tool_use")
    suite.check(isinstance(call.input["people"], int), f"joined: {call}")


def times(suite, model):
    """Who must wait is told until when, and by a request id that is in our journal."""
    try:
        suite.sdk.ask(model.replace(".ok", ".only.rate-429-retry-after-120"), ASK)
        suite.check(False, "no error though it rests")
    except anthropic.APIStatusError as error:
        suite.check("Please try again " in error.message and error.request_id, f"no time or no id: {error.message}, {error.request_id}")


def unserved(suite, model):
    """What is not served is told in the SDK's own envelope, with what is."""
    try:
        list(suite.sdk.client.messages.batches.list())
        suite.check(False, "batches are not served")
    except anthropic.NotFoundError as error:
        suite.check(error.body["error"]["type"] == "not_found_error" and "POST /v1/messages" in error.message, f"{error}")


Sdk.more = [helpers, times, unserved]
Suite(Sdk()).run()
