// The official Node SDK of Google for Gemini. Usage: node google_gemini.mjs GATEWAY
import { ASK, BASE, KEY, Suite, require, version } from "./suite.mjs";

const { ApiError, FunctionCallingConfigMode, GoogleGenAI } = require("@google/genai");
const connect = (apiKey) => new GoogleGenAI({ apiKey, httpOptions: { baseUrl: BASE, timeout: 60_000 } });
const client = connect(KEY);

function contents([kind, first, second]) {
  switch (kind) {
    case "user": return [{ role: "user", parts: [{ text: first }] }];
    case "image": return [{ role: "user", parts: [{ inlineData: { data: second, mimeType: "image/png" } }, { text: first }] }];
    case "answer": return [first.turn];
    case "results": return [{ role: "user", parts: first.map(([call, output]) => ({ functionResponse: { id: call.id, name: call.name, response: { output } } })) }];
  }
}

function read(chunks) {
  const candidates = chunks.flatMap((chunk) => chunk.candidates ?? []);
  const parts = candidates.flatMap((candidate) => candidate.content?.parts ?? []);
  const ends = candidates.map((candidate) => candidate.finishReason).filter(Boolean);
  if (ends.length !== 1) throw new Error(`the answer ends ${ends.length} times`);
  const calls = parts.filter((part) => part.functionCall).map(({ functionCall: call }, at) => ({ id: call.id ?? `${at}`, name: call.name, args: call.args ?? {} }));
  const text = parts.filter((part) => !part.thought).map((part) => part.text ?? "").join("");
  const { promptTokenCount = 0, candidatesTokenCount = 0 } = chunks.at(-1).usageMetadata;
  return { text, finish: ends[0], calls, usage: [promptTokenCount, candidatesTokenCount], turn: { role: "model", parts } };
}

const sdk = {
  name: `@google/genai ${version("@google/genai")} (Node)`,
  ends: { stop: "STOP", length: "MAX_TOKENS", tools: "STOP", filter: "SAFETY" },
  base: ApiError,
  // There is one class, and the status in it.
  named: (error) => `${error.constructor.name} ${error.status}`,
  told: (error) => error.message,
  errors: {
    "fail-500": "ApiError 500", "fail-503": "ApiError 503", overloaded: "ApiError 503", "rate-429?retry_after=120": "ApiError 429", context: "ApiError 400", "filter-400": "ApiError 400",
    "auth-401": "ApiError 502", "no model": "ApiError 404", "no key": "ApiError 401", "bad request": "ApiError 400", resting: "ApiError 429",
  },
  inStream: ["ApiError 500", "ApiError 502", "ApiError 503"],

  async ask(model, turns, { system, tools, must, schema, stream, most, key, broken, began, think } = {}) {
    const config = { systemInstruction: system, maxOutputTokens: most };
    if (tools) config.tools = [{ functionDeclarations: tools.map(({ name, description, schema }) => ({ name, description, parametersJsonSchema: schema })) }];
    if (must) config.toolConfig = { functionCallingConfig: { mode: FunctionCallingConfigMode.ANY, allowedFunctionNames: [must] } };
    if (think) config.thinkingConfig = { includeThoughts: true };
    if (schema) Object.assign(config, { responseMimeType: "application/json", responseJsonSchema: schema });
    if (broken) config.httpOptions = { extraBody: { contents: 7 } };
    const given = { model, contents: turns.flatMap(contents), config };
    const { models } = key ? connect(key) : client;
    if (!stream) return read([await models.generateContent(given)]);
    const chunks = [];
    for await (const chunk of await models.generateContentStream(given)) {
      chunks.push(chunk);
      if (chunk.candidates?.[0]?.content?.parts?.[0]?.text) began?.push(chunk);
    }
    return read(chunks);
  },

  count: async (model, turns) => (await client.models.countTokens({ model, contents: turns.flatMap(contents) })).totalTokens,
  async models() {
    const names = [];
    for await (const model of await client.models.list()) names.push(model.name.replace(/^models\//, ""));
    return names;
  },
  model: async (name) => (await client.models.get({ model: name })).name.replace(/^models\//, ""),
};

// What the SDK itself makes of our answers: its chat.
async function helpers(suite, model) {
  const chat = client.chats.create({ model: model.replace(".ok", ".fall.cut-after-6") });
  let text = "";
  for await (const chunk of await chat.sendMessageStream({ message: ASK[0][1] })) text += chunk.text ?? "";
  suite.check(text === (await sdk.ask(model, ASK)).text, `a chat: ${text}`);
  suite.check((await chat.sendMessage({ message: "And then?" })).text.length > 20, "a chat has no second answer");
}

sdk.more = [helpers];
await new Suite(sdk).run();
