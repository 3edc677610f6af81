// The official Node SDK of OpenAI, responses. Usage: node openai_responses.mjs GATEWAY
import { ASK, BASE, BOOK, KEY, Suite, parsed, require, version } from "./suite.mjs";

const OpenAI = require("openai").default ?? require("openai");
const connect = (apiKey) => new OpenAI({ baseURL: `${BASE}/v1`, apiKey, timeout: 60_000 });
const client = connect(KEY);
const fn = (tool) => ({ type: "function", name: tool.name, description: tool.description, parameters: tool.schema, strict: true });

// The SDK hands `response.failed` to the program and raises nothing: the tests do.
class Failed extends OpenAI.APIError {
  constructor(error) {
    super(undefined, error, error.message, undefined);
  }
}

function items([kind, first, second]) {
  switch (kind) {
    case "user": return [{ role: "user", content: first }];
    case "image": return [{ role: "user", content: [{ type: "input_text", text: first }, { type: "input_image", detail: "auto", image_url: `data:image/png;base64,${second}` }] }];
    case "answer": return first.turn;
    case "results": return first.map(([call, output]) => ({ type: "function_call_output", call_id: call.id, output }));
  }
}

function read(said) {
  const calls = said.output.filter((item) => item.type === "function_call").map((item) => ({ id: item.call_id, name: item.name, args: parsed(item.arguments) }));
  const finish = said.incomplete_details ? `${said.status}: ${said.incomplete_details.reason}` : said.status;
  const text = said.output.filter((item) => item.type === "message").flatMap((item) => item.content).map((part) => part.text ?? "").join("");
  return { text, finish, calls, usage: [said.usage.input_tokens, said.usage.output_tokens], turn: said.output };
}

// Joined by hand from the small events, and compared with what the last one says.
async function streamed(events, began) {
  let text = "", last = null, number = 0;
  const given = {};
  for await (const event of events) {
    if (event.sequence_number !== number++) throw new Error(`event ${number - 1} has the number ${event.sequence_number}`);
    if (event.type === "response.output_text.delta") {
      text += event.delta;
      began?.push(text);
    }
    if (event.type === "response.function_call_arguments.delta") given[event.item_id] = (given[event.item_id] ?? "") + event.delta;
    if (event.type === "response.failed") throw new Failed(event.response.error);
    if (event.type === "response.completed" || event.type === "response.incomplete") last = event.response;
  }
  const said = read(last);
  if (text !== said.text) throw new Error(`the pieces say ${text}, the end ${said.text}`);
  const pieces = JSON.stringify(Object.values(given).map(parsed)), whole = JSON.stringify(said.calls.map((call) => call.args));
  if (pieces !== whole) throw new Error(`the pieces say ${pieces}, the end ${whole}`);
  return said;
}

const sdk = {
  name: `openai ${version("openai")} (Node, responses)`,
  ends: { stop: "completed", length: "incomplete: max_output_tokens", tools: "completed", filter: "incomplete: content_filter" },
  base: OpenAI.APIError,
  named: (error) => error.constructor.name,
  told: (error) => error.error,
  errors: {
    "fail-500": "InternalServerError", "fail-503": "InternalServerError", overloaded: "InternalServerError", "rate-429?retry_after=120": "RateLimitError",
    context: "BadRequestError", "filter-400": "BadRequestError", "auth-401": "InternalServerError", "no model": "NotFoundError", "no key": "AuthenticationError",
    "bad request": "BadRequestError",
  },
  inStream: ["Failed"],

  async ask(model, turns, { system, tools, must, schema, stream, most, key, broken, began, think } = {}) {
    const given = { model, input: broken ? 7 : turns.flatMap(items), store: false };
    if (system) given.instructions = system;
    if (tools) given.tools = tools.map(fn);
    if (must) given.tool_choice = { type: "function", name: must };
    if (schema) given.text = { format: { type: "json_schema", name: "booking", schema, strict: true } };
    if (most) given.max_output_tokens = most;
    if (think) Object.assign(given, { reasoning: { effort: "high", summary: "auto" }, include: ["reasoning.encrypted_content"] });
    const { responses } = key ? connect(key) : client;
    return stream ? streamed(await responses.create({ ...given, stream: true }), began) : read(await responses.create(given));
  },
};

// What the SDK itself makes of our events: its own joining of streams.
async function helpers(suite, model) {
  const given = { input: ASK[0][1] };
  const joined = await client.responses.stream({ ...given, model: model.replace(".ok", ".fall.cut-after-6") }).finalResponse();
  suite.check(joined.output_text === (await sdk.ask(model, ASK)).text && joined.status === "completed", JSON.stringify(joined));
  const called = await client.responses.stream({ ...given, model: model.replace(".ok", ".fall.broken-tool-args-form-python"), tools: [fn(BOOK)] }).finalResponse();
  const call = called.output.find((item) => item.type === "function_call");
  suite.check(Number.isInteger(JSON.parse(call.arguments).people), JSON.stringify(called));
}

sdk.more = [helpers];
await new Suite(sdk).run();
