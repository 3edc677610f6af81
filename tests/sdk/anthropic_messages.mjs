// The official Node SDK of Anthropic. Usage: node anthropic_messages.mjs GATEWAY
import { ASK, BASE, BOOK, KEY, Suite, parsed, require, version } from "./suite.mjs";

const Anthropic = require("@anthropic-ai/sdk").default ?? require("@anthropic-ai/sdk");
const connect = (apiKey) => new Anthropic({ baseURL: BASE, apiKey, timeout: 60_000 });
const client = connect(KEY);
const tool = ({ name, description, schema }) => ({ name, description, input_schema: schema });

function messages([kind, first, second]) {
  switch (kind) {
    case "user": return [{ role: "user", content: first }];
    case "image": return [{ role: "user", content: [{ type: "image", source: { type: "base64", media_type: "image/png", data: second } }, { type: "text", text: first }] }];
    case "answer": return [{ role: "assistant", content: first.turn }];
    case "results": return [{ role: "user", content: first.map(([call, content]) => ({ type: "tool_result", tool_use_id: call.id, content })) }];
  }
}

function read(said) {
  const text = said.content.map((block) => block.text ?? "").join("");
  const calls = said.content.filter((block) => block.type === "tool_use").map((block) => ({ id: block.id, name: block.name, args: block.input }));
  return { text, finish: said.stop_reason, calls, usage: [said.usage.input_tokens, said.usage.output_tokens], turn: said.content };
}

// Joined by hand; the SDK's own joining is looked at in `helpers`.
async function streamed(events, began) {
  const content = [], pieces = [], usage = {};
  let stop_reason = null, last = null;
  for await (const event of events) {
    last = event.type;
    if (event.type === "message_start") Object.assign(usage, event.message.usage);
    if (event.type === "content_block_start") {
      if (event.index !== content.length) throw new Error(`block ${event.index} after ${content.length}`);
      content.push(event.content_block);
      pieces.push("");
    }
    if (event.type === "content_block_delta") {
      pieces[event.index] += event.delta.text ?? event.delta.partial_json ?? event.delta.thinking ?? "";
      if (event.delta.signature) content[event.index].signature = event.delta.signature;
      began?.push(event);
    }
    if (event.type === "message_delta") {
      stop_reason = event.delta.stop_reason;
      Object.assign(usage, { output_tokens: event.usage.output_tokens, input_tokens: event.usage.input_tokens || usage.input_tokens });
    }
  }
  if (last !== "message_stop") throw new Error(`the stream ended with ${last}`);
  const whole = content.map((block, at) => {
    if (block.type === "thinking") return { type: "thinking", thinking: pieces[at], signature: block.signature };
    return block.type === "text" ? { type: "text", text: pieces[at] } : { type: "tool_use", id: block.id, name: block.name, input: parsed(pieces[at]) };
  });
  if (whole.some((block) => block.type === "thinking" && !block.signature)) throw new Error("thoughts without a signature");
  return read({ content: whole, stop_reason, usage });
}

const sdk = {
  name: `@anthropic-ai/sdk ${version("@anthropic-ai/sdk")} (Node)`,
  ends: { stop: "end_turn", length: "max_tokens", tools: "tool_use", filter: "refusal" },
  base: Anthropic.APIError,
  named: (error) => error.constructor.name,
  told: (error) => error.error,
  errors: {
    "fail-500": "InternalServerError", "fail-503": "ServiceUnavailableError", overloaded: "OverloadedError", "rate-429?retry_after=120": "RateLimitError",
    context: "BadRequestError", "filter-400": "BadRequestError", "auth-401": "InternalServerError", "no model": "NotFoundError", "no key": "AuthenticationError",
    "bad request": "BadRequestError",
  },
  inStream: ["APIError"],

  async ask(model, turns, { system, tools, must, schema, stream, most, key, broken, began, think } = {}) {
    const given = { model, max_tokens: most ?? 4096, messages: broken ? "not a list" : turns.flatMap(messages) };
    if (system) given.system = system;
    if (tools) given.tools = tools.map(tool);
    if (must) given.tool_choice = { type: "tool", name: must };
    if (schema) given.output_config = { format: { type: "json_schema", schema } };
    if (think) given.thinking = { type: "enabled", budget_tokens: 2048 };
    const asked = (key ? connect(key) : client).messages;
    return stream ? streamed(await asked.create({ ...given, stream: true }), began) : read(await asked.create(given));
  },

  count: async (model, turns) => (await client.messages.countTokens({ model, messages: turns.flatMap(messages) })).input_tokens,
  async models() {
    const names = [];
    for await (const model of client.models.list()) names.push(model.id);
    return names;
  },
  model: async (name) => (await client.models.retrieve(name)).id,
};

// What the SDK itself makes of our events: its own joining of streams.
async function helpers(suite, model) {
  const given = { max_tokens: 1024, messages: ASK.flatMap(messages) };
  const joined = await client.messages.stream({ ...given, model: model.replace(".ok", ".fall.cut-after-6") }).finalMessage();
  suite.check(joined.content[0].text === (await sdk.ask(model, ASK)).text && joined.stop_reason === "end_turn", JSON.stringify(joined));
  const called = await client.messages.stream({ ...given, model: model.replace(".ok", ".fall.broken-tool-args-form-python"), tools: [tool(BOOK)] }).finalMessage();
  suite.check(Number.isInteger(called.content.find((block) => block.type === "tool_use")?.input.people), JSON.stringify(called));
}

// Who must wait is told until when.
async function times(suite, model) {
  const error = await suite.raised(() => sdk.ask(model.replace(".ok", ".only.rate-429-retry-after-120"), ASK));
  suite.check(error.message.includes("Please try again ") && error.requestID, `no time or no id: ${error.message}, ${error.requestID}`);
}

sdk.more = [helpers, times];
await new Suite(sdk).run();
