/** The chat page of a real gateway, whose simulated provider falls on command. It needs the program: `KOBOSHI=target/debug/koboshi`. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import WebSocket from "ws";
import { publishedClasses } from "../seed/load.mjs";
import { answers, hasText, isDone, launch, openPage, until } from "./chromium.mjs";
import { openGateway } from "./gateway.mjs";

const binary = process.env.KOBOSHI;
const skip = binary ? false : "no gateway was named";
let browser;
let gateway;
before(async () => {
  if (binary) [browser, gateway] = await Promise.all([launch(), openGateway(binary)]);
});
after(async () => {
  await browser?.close();
  await gateway?.close();
});

function chat(what, run) {
  test(what, { skip }, async () => {
    const context = await browser.newContext({ locale: "en-US" });
    try {
      const page = await openPage(context, `${gateway.origin}/chat`);
      const ask = async (model, from = page) => {
        await from.check(`input[value=${model}]`);
        await from.fill("#input", "How does the doll get up again?");
        await from.press("#input", "Enter");
      };
      await run({ context, page, ask });
      assert.deepEqual(page.problems, []);
    } finally {
      await context.close();
    }
  });
}

/** The same question has the same answer, whatever falls on the way. */
let whole;
async function isWhole(page) {
  await isDone(page);
  const all = await answers(page);
  assert.equal(all.length, 1);
  assert.ok(all[0].length > 40, all[0]);
  whole ??= all[0];
  assert.equal(all[0], whole);
}

chat("a message is answered", async ({ page, ask }) => {
  await ask("ok");
  await isWhole(page);
});

chat("the provider dies in mid-answer, and the answer goes on", async ({ page, ask }) => {
  await ask("cut");
  await isWhole(page);
});

chat("a rate limit is waited out", async ({ page, ask }) => {
  await ask("rate");
  await isDone(page);
  assert.ok((await answers(page))[0].length > 40);
});

chat("a provider that is down is an error with a button, beside the message", async ({ page, ask }) => {
  await ask("down");
  await page.waitForSelector("koboshi-error:not([hidden])");
  assert.ok(await page.locator("koboshi-error [part=retry]").isVisible());
});

chat("the connection is cut in mid-answer", async ({ page, ask }) => {
  await ask("ok");
  await hasText(page, 10);
  await page.click("#cut");
  await isWhole(page);
});

chat("the page is reloaded in mid-answer", async ({ page, ask }) => {
  await ask("ok");
  await hasText(page, 10);
  await page.reload();
  await isWhole(page);
});

chat("two tabs show the same", async ({ context, page, ask }) => {
  await ask("ok");
  await hasText(page, 10);
  const opening = context.waitForEvent("page");
  await page.evaluate(() => void open(location.href));
  const other = await opening;
  await isWhole(page);
  await isWhole(other);
});

for (const signal of ["SIGTERM", "SIGKILL"]) {
  chat(`the gateway is restarted in mid-answer (${signal})`, async ({ page, ask }) => {
    await ask("ok");
    await hasText(page, 10);
    await gateway.stop(signal);
    await gateway.start();
    await isWhole(page);
  });
}

chat("two tabs of one conversation both come back after the gateway was restarted, more than once", async ({ context, page, ask }) => {
  await ask("ok");
  await isWhole(page);
  const opening = context.waitForEvent("page");
  await page.evaluate(() => void open(location.href));
  const other = await opening;
  await isDone(other);
  for (const signal of ["SIGTERM", "SIGKILL"]) {
    await gateway.stop(signal);
    await gateway.start();
    for (const one of [page, other]) await until(one, () => document.getElementById("connection").dataset.phase === "open");
  }
  assert.deepEqual(await answers(other), await answers(page));
  assert.equal(await other.locator("koboshi-error:not([hidden])").count(), 0);
});

test("the published client and error handler work against /ws as they are", { skip }, async () => {
  const { RobustAgentClient, ErrorHandler } = publishedClasses(WebSocket);
  const client = new RobustAgentClient(`${gateway.socket}/ws`);
  const handler = new ErrorHandler();
  const seen = [];
  handler.register(4004, (error) => seen.push(["limited", error.recoverable]));
  handler.register(4002, (error) => seen.push(["context", error.recoverable]));
  handler.setDefault((error) => seen.push(["other", error.code]));
  client.onError((error) => handler.handle(error));
  await client.connect();
  const frames = [];
  client.socket.addEventListener("message", ({ data }) => frames.push(JSON.parse(data)));
  const settled = async (condition) => {
    for (let n = 0; n < 400 && !condition(); n++) await new Promise((resolve) => setTimeout(resolve, 25));
    assert.ok(condition(), JSON.stringify({ seen, frames: frames.slice(-5) }));
  };
  const ask = (route) => client.socket.send(JSON.stringify({ type: "chat", content: "hello", route }));
  ask("sim/ok");
  await settled(() => frames.some(({ type }) => type === "done"));
  assert.ok(frames.filter(({ type }) => type === "content").map(({ data }) => data).join("").length > 20);
  ask("sim/rate-429?retry_after=1&times=1");
  await settled(() => frames.filter(({ type }) => type === "done").length === 2);
  const notice = frames.find(({ type }) => type === "retry");
  assert.ok(notice.delay_ms > 0 && notice.message, JSON.stringify(notice));
  assert.deepEqual(seen, [], "a retry is no error");
  ask("sim/quota");
  await settled(() => seen.length === 1);
  ask("sim/context");
  await settled(() => seen.length === 2);
  assert.deepEqual(seen, [["limited", true], ["context", true]]);
  client.socket.close();
});
