// The official Node SDK of OpenAI, chat completions. Usage: node openai_chat.mjs GATEWAY
import { ASK, BASE, BOOK, KEY, PIXEL, Suite, parsed, require, version } from "./suite.mjs";

const OpenAI = require("openai").default ?? require("openai");
const connect = (apiKey) => new OpenAI({ baseURL: `${BASE}/v1`, apiKey, timeout: 60_000 });
const client = connect(KEY);
const fn = (tool) => ({ type: "function", function: { name: tool.name, description: tool.description, parameters: tool.schema } });

function messages([kind, first, second]) {
  switch (kind) {
    case "user": return [{ role: "user", content: first }];
    case "image": return [{ role: "user", content: [{ type: "text", text: first }, { type: "image_url", image_url: { url: `data:image/png;base64,${second}` } }] }];
    case "answer": return [first.turn];
    case "results": return first.map(([call, content]) => ({ role: "tool", tool_call_id: call.id, content }));
  }
}

async function streamed(chunks, began) {
  let text = "", finish = null, usage = [0, 0];
  const calls = [];
  for await (const chunk of chunks) {
    if (chunk.usage) usage = [chunk.usage.prompt_tokens, chunk.usage.completion_tokens];
    for (const choice of chunk.choices) {
      text += choice.delta.content ?? "";
      finish = choice.finish_reason ?? finish;
      for (const call of choice.delta.tool_calls ?? []) {
        const known = (calls[call.index] ??= { id: "", type: "function", function: { name: "", arguments: "" } });
        known.id += call.id ?? "";
        known.function.name += call.function?.name ?? "";
        known.function.arguments += call.function?.arguments ?? "";
      }
    }
    if (text) began?.push(text);
  }
  const turn = { role: "assistant", content: text || null, ...(calls.length > 0 && { tool_calls: calls }) };
  return { text, finish, usage, turn, calls: calls.map((call) => ({ id: call.id, name: call.function.name, args: parsed(call.function.arguments) })) };
}

const sdk = {
  name: `openai ${version("openai")} (Node, chat)`,
  ends: { stop: "stop", length: "length", tools: "tool_calls", filter: "content_filter" },
  base: OpenAI.APIError,
  named: (error) => error.constructor.name,
  told: (error) => error.error,
  errors: {
    "fail-500": "InternalServerError", "fail-503": "InternalServerError", overloaded: "InternalServerError", "rate-429?retry_after=120": "RateLimitError",
    context: "BadRequestError", "filter-400": "BadRequestError", "auth-401": "InternalServerError", "no model": "NotFoundError", "no key": "AuthenticationError",
    "bad request": "BadRequestError",
  },
  inStream: ["APIError"],

  async ask(model, turns, { system, tools, must, schema, stream, most, key, broken, began, think } = {}) {
    const given = { model, messages: [...(system ? [{ role: "system", content: system }] : []), ...turns.flatMap(messages)] };
    if (broken) given.messages = "not a list";
    if (tools) given.tools = tools.map(fn);
    if (must) given.tool_choice = { type: "function", function: { name: must } };
    if (schema) given.response_format = { type: "json_schema", json_schema: { name: "booking", schema, strict: true } };
    if (most) given.max_completion_tokens = most;
    if (think) given.reasoning_effort = "high";
    const chat = (key ? connect(key) : client).chat.completions;
    if (stream) return streamed(await chat.create({ ...given, stream: true, stream_options: { include_usage: true } }), began);
    const said = await chat.create(given);
    const [{ message, finish_reason: finish }] = said.choices;
    const calls = (message.tool_calls ?? []).map((call) => ({ id: call.id, name: call.function.name, args: parsed(call.function.arguments) }));
    return { text: message.content ?? "", finish, calls, usage: [said.usage.prompt_tokens, said.usage.completion_tokens], turn: message };
  },

  async models() {
    const names = [];
    for await (const model of client.models.list()) names.push(model.id);
    return names;
  },
  model: async (name) => (await client.models.retrieve(name)).id,
};

// What the SDK itself makes of our frames: its own joining of streams, its own loop of tools.
async function helpers(suite, model) {
  const given = { model: model.replace(".ok", ".fall.cut-after-6"), messages: ASK.flatMap(messages) };
  const final = await client.chat.completions.stream(given).finalChatCompletion();
  suite.check(final.choices[0].message.content === (await sdk.ask(model, ASK)).text && final.choices[0].finish_reason === "stop", JSON.stringify(final));
  let booked = 0;
  const tool = fn(BOOK);
  tool.function.function = ({ people }) => ((booked += Number.isInteger(people)), "result-of-book_table");
  tool.function.parse = JSON.parse;
  const runner = client.chat.completions.runTools({ ...given, model: model.replace(".ok", ".fall.broken-tool-args-form-python"), tools: [tool], stream: true });
  suite.check((await runner.finalContent()).includes("result-of-") && booked === 1, `the loop of the SDK: ${booked}`);
}

sdk.more = [helpers];
await new Suite(sdk).run();
