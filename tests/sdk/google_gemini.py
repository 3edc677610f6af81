"""The official Python SDK of Google for Gemini. Usage: google_gemini.py GATEWAY"""
import pydantic
from google import genai
from google.genai import errors, types

from suite import ASK, BASE, BOOK, KEY, Answer, Call, Suite


class Sdk:
    name = f"google-genai {genai.__version__} (Python)"
    ends = {"stop": "STOP", "length": "MAX_TOKENS", "tools": "STOP", "filter": "SAFETY"}
    base = errors.APIError
    errors = {"fail-500": "ServerError", "fail-503": "ServerError", "overloaded": "ServerError", "rate-429?retry_after=120": "ClientError", "context": "ClientError",
              "filter-400": "ClientError", "auth-401": "ServerError", "no model": "ClientError", "no key": "ClientError", "bad request": "ClientError"}
    in_stream = {"ServerError"}

    def __init__(self):
        self.client = self.connect(KEY)

    def connect(self, key):
        return genai.Client(api_key=key, vertexai=False, http_options=types.HttpOptions(base_url=BASE, timeout=60_000))

    def told(self, error):
        return error.details

    def ask(self, model, turns, system=None, tools=(), must=None, schema=None, stream=False, most=None, key=None, broken=False, began=None, think=False):
        config = types.GenerateContentConfig(system_instruction=system, max_output_tokens=most, automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True))
        if tools:
            declared = [types.FunctionDeclaration(name=tool["name"], description=tool["description"], parameters_json_schema=tool["schema"]) for tool in tools]
            config.tools = [types.Tool(function_declarations=declared)]
        if must:
            config.tool_config = types.ToolConfig(function_calling_config=types.FunctionCallingConfig(mode="ANY", allowed_function_names=[must]))
        if schema:
            config.response_mime_type, config.response_json_schema = "application/json", schema
        if think:
            config.thinking_config = types.ThinkingConfig(include_thoughts=True)
        if broken:
            config.http_options = types.HttpOptions(extra_body={"contents": 7})
        client = self.connect(key) if key else self.client
        given = {"model": model, "config": config, "contents": [content for turn in turns for content in self.contents(*turn)]}
        if not stream:
            return self.read([client.models.generate_content(**given)])
        chunks = []
        for chunk in client.models.generate_content_stream(**given):
            chunks.append(chunk)
            if began is not None and chunk.text:
                began.append(chunk)
        return self.read(chunks)

    def read(self, chunks):
        parts = [part for chunk in chunks for candidate in chunk.candidates or [] if candidate.content for part in candidate.content.parts or []]
        ends = [candidate.finish_reason for chunk in chunks for candidate in chunk.candidates or [] if candidate.finish_reason]
        assert len(ends) == 1, f"the answer ends {len(ends)} times: {chunks}"
        usage = chunks[-1].usage_metadata
        calls = [Call(part.function_call.id or f"{at}", part.function_call.name, part.function_call.args or {}) for at, part in enumerate(parts) if part.function_call]
        text = "".join(part.text for part in parts if part.text and not part.thought)
        return Answer(text, ends[0].name, calls, (usage.prompt_token_count or 0, usage.candidates_token_count or 0), types.Content(role="model", parts=parts))

    def contents(self, kind, *given):
        match kind:
            case "user":
                return [types.Content(role="user", parts=[types.Part(text=given[0])])]
            case "image":
                return [types.Content(role="user", parts=[types.Part.from_bytes(data=given[1], mime_type="image/png"), types.Part(text=given[0])])]
            case "answer":
                return [given[0].turn]
            case "results":
                return [types.Content(role="user", parts=[types.Part(function_response=types.FunctionResponse(id=call.id, name=call.name, response={"output": text})) for call, text in given[0]])]

    def count(self, model, turns):
        return self.client.models.count_tokens(model=model, contents=[content for turn in turns for content in self.contents(*turn)]).total_tokens

    def models(self):
        return [model.name.removeprefix("models/") for model in self.client.models.list()]

    def model(self, name):
        return self.client.models.get(model=name).name.removeprefix("models/")


class Booking(pydantic.BaseModel):
    city: str
    people: int


def helpers(suite, model):
    """What the SDK itself makes of our answers: its own parsing, its own schemas and its own loop of tools."""
    client = suite.sdk.client
    said = client.models.generate_content(model=model, contents=ASK[0][1], config={"response_mime_type": "application/json", "response_schema": Booking})
    suite.check(isinstance(said.parsed, Booking), f"parsed: {said}")
    booked = []

    def book_table(city: str, people: int) -> str:
        """Books a table."""
        booked.append((city, people))
        return "result-of-book_table"

    said = client.models.generate_content(model=model.replace(".ok", ".fall.fail-503"), contents=ASK[0][1], config={"tools": [book_table]})
    suite.check(len(booked) == 1 and "result-of-" in said.text, f"the loop of the SDK: {booked}, {said.text}")
    chat = client.chats.create(model=model.replace(".ok", ".fall.cut-after-6"))
    text = "".join(chunk.text or "" for chunk in chat.send_message_stream(ASK[0][1]))
    suite.check(text == suite.sdk.ask(model, ASK).text, f"a chat: {text}")
    suite.check(len(chat.send_message("And then?").text) > 20, "a chat has no second answer")


def codes(suite, model):
    """The exception has no class for each case, but the code and the word."""
    for route, code, word in ((".only.rate-429-retry-after-120", 429, "RESOURCE_EXHAUSTED"), (".only.fail-503", 503, "UNAVAILABLE"), (".only.context", 400, "INVALID_ARGUMENT")):
        try:
            suite.sdk.ask(model.replace(".ok", route), ASK)
            suite.check(False, f"{route}: no error")
        except errors.APIError as error:
            suite.check((error.code, error.status) == (code, word), f"{route}: {error.code} {error.status}")


def unserved(suite, model):
    """What is not served is told in the SDK's own envelope, with what is."""
    try:
        suite.sdk.client.models.embed_content(model=model, contents="hello")
        suite.check(False, "embeddings are not served here")
    except errors.ClientError as error:
        suite.check((error.code, error.status) == (404, "NOT_FOUND") and ":generateContent" in error.message, f"{error}")


Sdk.more = [helpers, codes, unserved]
Suite(Sdk()).run()
