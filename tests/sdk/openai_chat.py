"""The official Python SDK of OpenAI, chat completions. Usage: openai_chat.py GATEWAY"""
import base64

import openai
import pydantic

from suite import ASK, BASE, KEY, Answer, Call, Suite, parsed


class Sdk:
    name = f"openai {openai.__version__} (Python, chat)"
    ends = {"stop": "stop", "length": "length", "tools": "tool_calls", "filter": "content_filter"}
    base = openai.APIError
    errors = {"fail-500": "InternalServerError", "fail-503": "InternalServerError", "overloaded": "InternalServerError", "rate-429?retry_after=120": "RateLimitError",
              "context": "BadRequestError", "filter-400": "BadRequestError", "auth-401": "InternalServerError", "no model": "NotFoundError", "no key": "AuthenticationError",
              "bad request": "BadRequestError"}
    in_stream = {"APIError"}

    def __init__(self):
        self.client = openai.OpenAI(base_url=f"{BASE}/v1", api_key=KEY, timeout=60)

    def told(self, error):
        return error.body

    def ask(self, model, turns, system=None, tools=(), must=None, schema=None, stream=False, most=None, key=None, broken=False, began=None, think=False):
        given = {"messages": ([{"role": "system", "content": system}] if system else []) + [message for turn in turns for message in self.messages(*turn)]}
        if broken:
            given["messages"] = "not a list"
        if tools:
            given["tools"] = [{"type": "function", "function": {"name": tool["name"], "description": tool["description"], "parameters": tool["schema"]}} for tool in tools]
        if must:
            given["tool_choice"] = {"type": "function", "function": {"name": must}}
        if schema:
            given["response_format"] = {"type": "json_schema", "json_schema": {"name": "booking", "schema": schema, "strict": True}}
        if most:
            given["max_completion_tokens"] = most
        if think:
            given["reasoning_effort"] = "high"
        client = self.client.with_options(api_key=key) if key else self.client
        if stream:
            return self.streamed(client.chat.completions.create(model=model, stream=True, stream_options={"include_usage": True}, **given), began)
        said = client.chat.completions.create(model=model, **given)
        choice = said.choices[0]
        calls = [Call(call.id, call.function.name, parsed(call.function.arguments)) for call in choice.message.tool_calls or []]
        return Answer(choice.message.content or "", choice.finish_reason, calls, (said.usage.prompt_tokens, said.usage.completion_tokens), choice.message)

    def streamed(self, chunks, began):
        text, finish, calls, usage = "", None, {}, (0, 0)
        for chunk in chunks:
            if chunk.usage:
                usage = (chunk.usage.prompt_tokens, chunk.usage.completion_tokens)
            for choice in chunk.choices:
                text += choice.delta.content or ""
                finish = choice.finish_reason or finish
                for call in choice.delta.tool_calls or []:
                    known = calls.setdefault(call.index, ["", "", ""])
                    for at, piece in enumerate((call.id, call.function.name, call.function.arguments)):
                        known[at] += piece or ""
            if text and began is not None:
                began.append(text)
        turn = {"role": "assistant", "content": text or None}
        if calls:
            turn["tool_calls"] = [{"id": id, "type": "function", "function": {"name": name, "arguments": given}} for id, name, given in calls.values()]
        return Answer(text, finish, [Call(id, name, parsed(given)) for id, name, given in calls.values()], usage, turn)

    def messages(self, kind, *given):
        match kind:
            case "user":
                return [{"role": "user", "content": given[0]}]
            case "image":
                url = f"data:image/png;base64,{base64.b64encode(given[1]).decode()}"
                return [{"role": "user", "content": [{"type": "text", "text": given[0]}, {"type": "image_url", "image_url": {"url": url}}]}]
            case "answer":
                return [given[0].turn]
            case "results":
                return [{"role": "tool", "tool_call_id": call.id, "content": text} for call, text in given[0]]

    def models(self):
        return [model.id for model in self.client.models.list()]

    def model(self, name):
        return self.client.models.retrieve(name).id


class Booking(pydantic.BaseModel):
    city: str
    people: int


def helpers(suite, model):
    """What the SDK itself makes of our frames: its own parsing and its own joining of streams."""
    client = suite.sdk.client
    messages = [{"role": "user", "content": ASK[0][1]}]
    said = client.chat.completions.parse(model=model, messages=messages, response_format=Booking)
    suite.check(isinstance(said.choices[0].message.parsed, Booking), f"parsed: {said}")
    with client.chat.completions.stream(model=model.replace(".ok", ".fall.cut-after-6"), messages=messages) as stream:
        kinds = {event.type for event in stream}
        final = stream.get_final_completion().choices[0]
    suite.check("content.delta" in kinds and final.finish_reason == "stop" and final.message.content == suite.sdk.ask(model, ASK).text, f"joined: {kinds}, {final}")
    tool = openai.pydantic_function_tool(Booking, name="book_table")
    with client.chat.completions.stream(model=model.replace(".ok", ".fall.broken-tool-args-form-python"), messages=messages, tools=[tool]) as stream:
        call = stream.get_final_completion().choices[0].message.tool_calls[0]
    suite.check(isinstance(call.function.parsed_arguments, Booking), f"joined: {call}")


def embeddings(suite, model):
    suite.check(len(suite.sdk.client.embeddings.create(model="sim/ok", input="hello").data[0].embedding) > 0, "no embedding")


def unserved(suite, model):
    """What is not served is told in the SDK's own envelope, with what is."""
    try:
        suite.sdk.client.images.generate(model="gpt-image-1", prompt="a doll")
        suite.check(False, "images are not served")
    except openai.NotFoundError as error:
        suite.check("POST /v1/chat/completions" in error.message, f"{error}")


Sdk.more = [helpers, embeddings, unserved]
Suite(Sdk()).run()
