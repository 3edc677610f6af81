/** The client at a real gateway, cut after every third byte (`KOBOSHI_CUTS_EVERY=1`: every one) of a turn that is rewound and runs a tool, in both directions. It needs the program: `KOBOSHI=target/debug/koboshi`. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer } from "node:net";
import { after, before, test } from "node:test";
import WebSocket from "ws";
import { createSession } from "../../dist/index.js";
import { openGateway } from "./gateway.mjs";

const binary = process.env.KOBOSHI;
const skip = binary ? false : "no gateway was named";
let gateway;
before(async () => {
  if (binary) gateway = await openGateway(binary, { config: "retry_budget: {min_per_second: 100000}\n" });
});
after(() => gateway?.close());

/** A way to the gateway whose first connection dies when so many bytes have passed one way. */
async function openWire(limit) {
  const passed = { up: 0, down: 0 };
  const sockets = new Set();
  let first = true;
  const server = createServer((client) => {
    const upstream = connect(new URL(gateway.origin).port, "127.0.0.1");
    const isFirst = first;
    first = false;
    for (const [from, to, way] of [[client, upstream, "up"], [upstream, client, "down"]]) {
      sockets.add(from);
      from.on("error", () => {});
      from.on("close", () => to.destroy());
      from.on("data", (data) => {
        const room = isFirst && limit?.way === way ? limit.bytes - passed[way] : Infinity;
        if (isFirst) passed[way] += data.length;
        if (data.length <= room) return void to.write(data);
        // What is before the cut arrives, and nothing of what is behind it.
        to.end(data.subarray(0, Math.max(0, room)));
        from.destroy();
      });
    }
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    passed,
    url: `ws://127.0.0.1:${server.address().port}/v1/session`,
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

let number = 0;
/** One turn; its first attempt breaks in mid-answer, and the second one calls a tool. */
async function turn(limit) {
  const wire = await openWire(limit);
  let runs = 0;
  // The pauses between two attempts to connect are short here.
  const session = createSession({ url: wire.url, WebSocket, storage: null, lang: "en", schedule: (callback, ms) => {
    const timer = setTimeout(callback, ms > 2_000 ? ms : ms / 50);
    return () => clearTimeout(timer);
  } });
  session.tool("look_up", ({ key }) => {
    runs++;
    return `found ${key}`;
  }, { description: "Looks something up", parameters: { type: "object", properties: { key: { type: "string" } }, required: ["key"] } });
  try {
    const result = await session.send("Look it up: 七転び八起き", { route: `sim/cut?after=3&times=1&say=4&chunks=5&tools=yes&seed=${number++}` });
    const [asked, answer, ...more] = session.state.messages;
    return { passed: wire.passed, runs, shown: { text: result.text, reason: result.reason, asked: asked.content, answer: answer.content, calls: answer.calls?.map(({ name, state, content }) => [name, state, content]), more: more.length } };
  } finally {
    session.close();
    wire.close();
  }
}

test("cut after any byte, both ways: one answer, once, and its tool runs once", { skip, timeout: 280_000 }, async () => {
  const whole = await turn();
  assert.equal(whole.runs, 1);
  assert.equal(whole.shown.calls.length, 1);
  assert.equal(whole.shown.more, 0);
  const cuts = ["up", "down"].flatMap((way) => Array.from({ length: whole.passed[way] }, (_, bytes) => ({ way, bytes })));
  assert.ok(cuts.length > 2_000, String(cuts.length));
  const every = Number(process.env.KOBOSHI_CUTS_EVERY ?? 3);
  const next = cuts.filter((_, place) => place % every === 0)[Symbol.iterator]();
  const failed = [];
  await Promise.all(Array.from({ length: 24 }, async () => {
    for (const cut of next) {
      const { runs, shown } = await turn(cut).catch((error) => ({ shown: String(error) }));
      if (runs !== 1 || JSON.stringify(shown) !== JSON.stringify(whole.shown)) failed.push({ cut, runs, shown });
    }
  }));
  assert.deepEqual(failed.slice(0, 3), [], `${failed.length} of ${cuts.length}`);
});
