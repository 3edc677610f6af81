// The official Node SDK through the gateway, while the primary falls in every way; the same promises as openai_python.py.
// Usage: node openai_node.mjs BASE_URL
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(process.env.KOBOSHI_NODE_MODULES + "/");
const OpenAI = require("openai").default ?? require("openai");
const base = process.argv[2];
const falls = JSON.parse(readFileSync(new URL("falls.json", import.meta.url)));
const client = new OpenAI({ baseURL: base, apiKey: "not-needed", timeout: 60_000 });
const messages = [{ role: "user", content: "Say something about falling down and getting up." }];
const parameters = {
  type: "object", properties: { city: { type: "string" }, people: { type: "integer" } }, required: ["city", "people"], additionalProperties: false,
};
const tools = [{ type: "function", function: { name: "book_table", description: "Books a table", parameters } }];
let checked = 0;

function check(ok, what) {
  checked += 1;
  if (!ok) {
    console.error(`openai (Node): ${what}`);
    process.exit(1);
  }
}

async function streamed(model, more = {}) {
  let text = "", finish = null;
  const calls = [];
  for await (const chunk of await client.chat.completions.create({ model, messages, stream: true, ...more })) {
    for (const choice of chunk.choices) {
      text += choice.delta.content ?? "";
      finish = choice.finish_reason ?? finish;
      for (const call of choice.delta.tool_calls ?? []) {
        const known = (calls[call.index] ??= { name: "", arguments: "" });
        known.name += call.function?.name ?? "";
        known.arguments += call.function?.arguments ?? "";
      }
    }
  }
  return { text, finish, calls };
}

async function attempts(target) {
  const { targets } = await (await fetch(base.replace(/\/v1$/, "") + "/koboshi/targets")).json();
  return targets.find((known) => known.target === target)?.attempts ?? 0;
}

const whole = (await client.chat.completions.create({ model: "sim/ok", messages })).choices[0].message.content;
for (const fall of falls.whole) {
  const answer = await client.chat.completions.create({ model: `fall:${fall}`, messages });
  check(answer.choices[0].message.content === whole, `${fall}: another answer`);
}
for (const fall of falls.stream) {
  const { text, finish } = await streamed(`fall:${fall}`);
  check(text === whole && finish === "stop", `${fall}: streamed ${JSON.stringify(text)}, ${finish}`);
}
for (const fall of falls.tools) {
  const answer = await client.chat.completions.create({ model: `fall:${fall}`, messages, tools });
  const call = answer.choices[0].message.tool_calls[0];
  check(Number.isInteger(JSON.parse(call.function.arguments).people), `${fall}: ${JSON.stringify(call)}`);
  const { finish, calls } = await streamed(`fall:${fall}`, { tools });
  check(finish === "tool_calls" && Number.isInteger(JSON.parse(calls[0].arguments).people), `${fall}: ${JSON.stringify(calls)}`);
}
for (const [fall, name] of Object.entries(falls.errors)) {
  const before = await attempts(`sim/${fall}`);
  try {
    await client.chat.completions.create({ model: `sim/${fall}`, messages });
    check(false, `${fall}: no error`);
  } catch (error) {
    check(error.constructor.name === name, `${fall}: ${error.constructor.name}, not ${name}`);
    check(error.error?.koboshi?.errorCode?.startsWith("KBS-"), `${fall}: ${JSON.stringify(error.error)}`);
  }
  check((await attempts(`sim/${fall}`)) - before <= 3, `${fall}: the SDK retried on top of us`);
}
try {
  await streamed("sim/cut?after=6");
  check(false, "a cut stream looks whole");
} catch (error) {
  check(error instanceof OpenAI.APIError, `cut: ${error}`);
}
console.log(`openai (Node): ${checked} checks hold`);
