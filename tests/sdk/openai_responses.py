"""The official Python SDK of OpenAI, responses. Usage: openai_responses.py GATEWAY"""
import base64

import openai
import pydantic

from suite import ASK, BASE, KEY, Answer, Call, Suite, parsed


class Sdk:
    name = f"openai {openai.__version__} (Python, responses)"
    ends = {"stop": "completed", "length": "incomplete: max_output_tokens", "tools": "completed", "filter": "incomplete: content_filter"}
    base = openai.APIError
    errors = {"fail-500": "InternalServerError", "fail-503": "InternalServerError", "overloaded": "InternalServerError", "rate-429?retry_after=120": "RateLimitError",
              "context": "BadRequestError", "filter-400": "BadRequestError", "auth-401": "InternalServerError", "no model": "NotFoundError", "no key": "AuthenticationError",
              "bad request": "BadRequestError"}
    in_stream = {"Failed"}

    def __init__(self):
        self.client = openai.OpenAI(base_url=f"{BASE}/v1", api_key=KEY, timeout=60)

    def told(self, error):
        return error.body

    def ask(self, model, turns, system=None, tools=(), must=None, schema=None, stream=False, most=None, key=None, broken=False, began=None, think=False):
        given = {"input": [item for turn in turns for item in self.items(*turn)], "store": False}
        if broken:
            given["input"] = 7
        if system:
            given["instructions"] = system
        if tools:
            given["tools"] = [{"type": "function", "name": tool["name"], "description": tool["description"], "parameters": tool["schema"], "strict": True} for tool in tools]
        if must:
            given["tool_choice"] = {"type": "function", "name": must}
        if schema:
            given["text"] = {"format": {"type": "json_schema", "name": "booking", "schema": schema, "strict": True}}
        if most:
            given["max_output_tokens"] = most
        if think:
            given |= {"reasoning": {"effort": "high", "summary": "auto"}, "include": ["reasoning.encrypted_content"]}
        client = self.client.with_options(api_key=key) if key else self.client
        if stream:
            return self.streamed(client.responses.create(model=model, stream=True, **given), began)
        return self.read(client.responses.create(model=model, **given))

    def read(self, said):
        finish = said.status if said.incomplete_details is None else f"{said.status}: {said.incomplete_details.reason}"
        calls = [Call(item.call_id, item.name, parsed(item.arguments)) for item in said.output if item.type == "function_call"]
        return Answer(said.output_text, finish, calls, (said.usage.input_tokens, said.usage.output_tokens), said.output)

    def streamed(self, events, began):
        """Joined by hand from the small events, and compared with what the last one says."""
        text, calls, last, numbers = "", {}, None, []
        for event in events:
            numbers.append(event.sequence_number)
            match event.type:
                case "response.output_text.delta":
                    text += event.delta
                    if began is not None:
                        began.append(text)
                case "response.function_call_arguments.delta":
                    calls[event.item_id] = calls.get(event.item_id, "") + event.delta
                case "response.failed":
                    raise Failed(event.response.error)
                case "response.completed" | "response.incomplete":
                    last = event.response
        assert numbers == list(range(len(numbers))), f"sequence numbers {numbers}"
        said = self.read(last)
        assert text == said.text, f"the pieces say {text!r}, the end {said.text!r}"
        assert [parsed(given) for given in calls.values()] == [call.args for call in said.calls], f"{calls}, {said.calls}"
        return said

    def items(self, kind, *given):
        match kind:
            case "user":
                return [{"role": "user", "content": given[0]}]
            case "image":
                url = f"data:image/png;base64,{base64.b64encode(given[1]).decode()}"
                return [{"role": "user", "content": [{"type": "input_text", "text": given[0]}, {"type": "input_image", "image_url": url, "detail": "auto"}]}]
            case "answer":
                return given[0].turn
            case "results":
                return [{"type": "function_call_output", "call_id": call.id, "output": text} for call, text in given[0]]


class Failed(openai.APIError):
    """The SDK hands `response.failed` to the program and raises nothing: the tests do."""

    def __init__(self, error):
        Exception.__init__(self, error.message)
        self.body = error.to_dict()


class Booking(pydantic.BaseModel):
    city: str
    people: int


def helpers(suite, model):
    """What the SDK itself makes of our events: its own parsing and its own joining of streams."""
    client = suite.sdk.client
    said = client.responses.parse(model=model, input=ASK[0][1], text_format=Booking)
    suite.check(isinstance(said.output_parsed, Booking), f"parsed: {said}")
    with client.responses.stream(model=model.replace(".ok", ".fall.cut-after-6"), input=ASK[0][1]) as stream:
        kinds = {event.type for event in stream}
        final = stream.get_final_response()
    suite.check("response.completed" in kinds and final.output_text == suite.sdk.ask(model, ASK).text, f"joined: {kinds}, {final}")
    tool = openai.pydantic_function_tool(Booking, name="book_table")["function"] | {"type": "function"}
    with client.responses.stream(model=model.replace(".ok", ".fall.broken-tool-args-form-python"), input=ASK[0][1], tools=[tool]) as stream:
        call = next(item for item in stream.get_final_response().output if item.type == "function_call")
    suite.check(isinstance(call.parsed_arguments["people"], int), f"joined: {call}")


Sdk.more = [helpers]
Suite(Sdk()).run()
