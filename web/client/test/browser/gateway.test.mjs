/** The chat page of a real gateway, whose simulated provider falls on command. It needs the program: `KOBOSHI=target/debug/koboshi`. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
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
  if (binary) [browser, gateway] = await Promise.all([launch(), openGateway(binary, { config: "serve: {allowed_hosts: [app.example]}\n" })]);
});
after(async () => {
  await browser?.close();
  await gateway?.close();
});

function chat(what, run, from = "origin") {
  test(what, { skip }, async () => {
    const context = await browser.newContext({ locale: "en-US" });
    try {
      const page = await openPage(context, `${gateway[from]}/chat`);
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

const phase = (page, wanted) => until(page, (to) => document.getElementById("connection").dataset.phase === to, wanted, `the connection is ${wanted}`);

chat("the socket is killed in mid-answer, three times", async ({ page, ask }) => {
  await ask("ok");
  for (const length of [10, 60, 110]) {
    await hasText(page, length);
    gateway.relay.kill();
    await until(page, () => document.getElementById("log").textContent.includes("The connection is gone."));
    await phase(page, "open");
  }
  await isWhole(page);
  assert.equal(await page.locator("koboshi-error:not([hidden])").count(), 0);
}, "relayed");

chat("offline in mid-answer it makes no attempt, online it goes on at once", async ({ context, page, ask }) => {
  await ask("ok");
  await hasText(page, 10);
  await context.setOffline(true);
  gateway.relay.kill();
  await phase(page, "waiting");
  const { connections } = gateway.relay;
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  assert.equal(gateway.relay.connections, connections);
  await context.setOffline(false);
  await isWhole(page);
}, "elsewhere");

chat("a page that is hidden and frozen while its socket dies makes no attempt, and has the answer when it is looked at", async ({ context, page, ask }) => {
  await ask("ok");
  await hasText(page, 10);
  const devtools = await context.newCDPSession(page);
  // What a browser does with a tab that nobody looks at.
  await page.evaluate(() => {
    Object.defineProperty(document, "visibilityState", { value: "hidden", configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  });
  await devtools.send("Page.setWebLifecycleState", { state: "frozen" });
  gateway.relay.kill();
  const { connections } = gateway.relay;
  await new Promise((resolve) => setTimeout(resolve, 3_000));
  assert.equal(gateway.relay.connections, connections);
  await devtools.send("Page.setWebLifecycleState", { state: "active" });
  await page.evaluate(() => {
    Object.defineProperty(document, "visibilityState", { value: "visible", configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  });
  await isWhole(page);
}, "relayed");

chat("a connection that is back soon is not spoken of, one that stays away is", async ({ page, ask }) => {
  await phase(page, "open");
  await page.evaluate(() => {
    window.said = [];
    const status = document.getElementById("connection");
    new MutationObserver(() => window.said.push(status.textContent)).observe(status, { childList: true, characterData: true, subtree: true });
  });
  gateway.relay.kill();
  await phase(page, "waiting");
  await phase(page, "open");
  assert.ok((await page.evaluate(() => window.said)).every((text) => text === "connected"));
  await gateway.stop();
  await until(page, () => window.said.includes("reconnecting"));
  await gateway.start();
  await phase(page, "open");
  await ask("ok");
  await isWhole(page);
}, "relayed");

test("where a key is needed the page asks for it, and the routes of the config can be chosen", { skip }, async () => {
  const hash = createHash("sha256").update("kbs-app").digest("hex");
  const own = await openGateway(binary, { config: `keys: {app: {sha256: "${hash}"}}\nproviders: {one: {kind: openai, base_url: "http://127.0.0.1:9/v1", keys: [k]}}\nroutes: {house: [sim/ok], other: [one/model-a]}\n` });
  const context = await browser.newContext({ locale: "en-US" });
  try {
    const page = await openPage(context, `${own.origin}/chat`);
    await page.waitForSelector("#key:not([hidden])");
    await page.fill("#key-input", "kbs-app");
    await page.click("#key-send");
    await phase(page, "open");
    assert.ok(await page.locator("#key").isHidden());
    await page.check("input[value=house]");
    const offered = await page.locator("input[type=radio]").evaluateAll((all) => all.map((one) => one.value));
    assert.ok(offered.includes("other") && !offered.includes("one/model-a"), `routes, and not the models they lead to: ${offered}`);
    await page.fill("#input", "How does the doll get up again?");
    await page.press("#input", "Enter");
    await isDone(page);
    assert.ok((await answers(page))[0].length > 40);
    assert.equal(await page.locator("koboshi-error:not([hidden])").count(), 0);
  } finally {
    await context.close();
    await own.close();
  }
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
