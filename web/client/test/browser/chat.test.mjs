/** The chat page in a real browser, against the fake server: whatever breaks, one right answer, once. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { rewindAt } from "../../dist/testing/index.js";
import { answers, hasText, isDone, launch, openPage, until } from "./chromium.mjs";
import { openSite } from "./site.mjs";

const ANSWER = "起き上がり小法師は、底が重いので、倒れても起き上がります。";
const axe = readFileSync(new URL("../../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

async function chat(run, options = {}) {
  const site = await openSite({ answer: () => [...ANSWER], pieceMs: 25, reconnectMs: 100, ...options });
  const context = await browser.newContext({ locale: "en-US" });
  try {
    const page = await openPage(context, `${site.origin}/chat/`);
    const ask = async (from = page) => {
      await from.fill("#input", "How?");
      await from.press("#input", "Enter");
    };
    await run({ site, context, page, ask });
    assert.deepEqual(page.problems, []);
  } finally {
    await context.close();
    site.close();
  }
}

/** One user message, one answer, whole, asked for so often. */
async function isWhole(page, { fake }, calls) {
  await isDone(page);
  assert.deepEqual(await answers(page), [ANSWER]);
  assert.equal(await page.locator(".user").count(), 1);
  if (calls !== undefined) assert.equal(fake.upstreamCalls, calls);
}

test("a message is answered", () => chat(async ({ site, page, ask }) => {
  await ask();
  await isWhole(page, site, 1);
  assert.equal(await page.textContent("#connection"), "connected");
}));

test("a provider dies in mid-answer: the page says so, and the answer goes on", () => chat(async ({ site, page, ask }) => {
  await ask();
  await until(page, () => document.querySelector("#log .loud"));
  await isWhole(page, site, 2);
  assert.match(await page.textContent("#log"), /\d\d:\d\d:\d\d.*The connection to the provider broke\. The answer starts over\./s);
}, { faults: [rewindAt(9)] }));

test("a killed connection is resumed by replay", () => chat(async ({ site, page, ask }) => {
  await ask();
  await hasText(page);
  site.fake.cut();
  await isWhole(page, site, 1);
  assert.equal(site.fake.connections, 2);
}));

test("the page's own button cuts the connection, and the answer is whole", () => chat(async ({ site, page, ask }) => {
  await ask();
  await hasText(page);
  await page.click("#cut");
  await isWhole(page, site, 1);
}));

test("a reload in mid-answer shows the same turn", () => chat(async ({ site, page, ask }) => {
  await ask();
  await hasText(page);
  await page.reload();
  await isWhole(page, site, 1);
}));

test("a message that was typed while the server was away is sent once it is back, also after a reload", () => chat(async ({ site, page, ask }) => {
  await until(page, () => document.getElementById("connection").dataset.phase === "open");
  site.fake.down();
  await until(page, () => document.getElementById("connection").dataset.phase !== "open");
  await ask();
  await until(page, () => document.querySelector(".pending"));
  await page.reload();
  await until(page, () => document.querySelector(".pending"));
  site.fake.down(false);
  await isWhole(page, site, 1);
}));

test("a server that restarts takes the turn over", () => chat(async ({ site, page, ask }) => {
  await ask();
  await hasText(page);
  site.fake.down();
  site.fake.killOwner();
  site.fake.down(false);
  await isWhole(page, site, 2);
}));

test("two tabs of one conversation show the same", () => chat(async ({ site, context, page, ask }) => {
  await ask();
  await hasText(page);
  const opening = context.waitForEvent("page");
  await page.evaluate(() => void open(location.href));
  const other = await opening;
  await isWhole(page, site, 1);
  await isDone(other);
  assert.deepEqual(await answers(other), await answers(page));
  await ask(other);
  await until(page, () => document.querySelectorAll(".user").length === 2);
  await until(page, () => document.querySelectorAll(".answer").length === 2 && document.getElementById("stop").hidden);
  assert.deepEqual(await answers(page), [ANSWER, ANSWER]);
}));

test("offline it waits without attempts, online it goes on at once", () => chat(async ({ site, context }) => {
  const page = await openPage(context, `${site.elsewhere}/chat/`);
  await page.fill("#input", "How?");
  await page.press("#input", "Enter");
  await hasText(page);
  await context.setOffline(true);
  site.fake.cut();
  await until(page, () => document.getElementById("connection").dataset.phase === "waiting");
  const { connections } = site.fake;
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  assert.equal(site.fake.connections, connections);
  await context.setOffline(false);
  await isWhole(page, site, 1);
}));

test("a hidden page makes no attempts, and comes back when it is looked at", () => chat(async ({ site, page, ask }) => {
  const look = (state) => page.evaluate((to) => {
    Object.defineProperty(document, "visibilityState", { value: to, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  }, state);
  await ask();
  await hasText(page);
  await look("hidden");
  site.fake.cut();
  await until(page, () => document.getElementById("connection").dataset.phase === "waiting");
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  assert.equal(site.fake.connections, 1 + 0);
  await look("visible");
  await isWhole(page, site, 1);
}));

test("stop keeps what came", () => chat(async ({ page, ask, site }) => {
  await ask();
  await hasText(page);
  await page.click("#stop");
  await isDone(page);
  const [text] = await answers(page);
  assert.ok(ANSWER.startsWith(text) && text.length < ANSWER.length);
  assert.equal(site.fake.transcript.messages[1].reason, "cancelled");
}));

test("a failed turn shows the error beside it, and the button tries it again", () => {
  let tries = 0;
  const failure = { error: { kind: "overloaded", kbs: "KBS-5003", message: "The AI model is overloaded.", suggestion: "Try again.", retry: { later: true, after_ms: 300 } } };
  return chat(async ({ page, ask, site }) => {
    await ask();
    await page.waitForSelector("koboshi-error:not([hidden])");
    const retry = page.locator("koboshi-error [part=retry]");
    await until(page, () => document.querySelector("koboshi-error").shadowRoot.querySelector("[part=retry]").ariaDisabled === "false");
    await retry.click();
    await until(page, (whole) => document.querySelector(".answer")?.textContent.includes(whole), ANSWER);
    await isWhole(page, site, 2);
    assert.equal(await page.locator("koboshi-error").isVisible(), false);
  }, { answer: () => (tries++ === 0 ? ["half", failure] : [...ANSWER]) });
});

test("the error says how often its turn was tried", () => {
  const failure = { error: { kind: "overloaded", kbs: "KBS-5003", message: "The AI model is overloaded.", suggestion: "Try again.", retry: { later: true, after_ms: 300 } } };
  return chat(async ({ page, ask, site }) => {
    await ask();
    await hasText(page, 2);
    site.fake.rewind();
    await page.waitForSelector("koboshi-error:not([hidden])");
    assert.equal(await page.locator("koboshi-error .tried").textContent(), "Tried 2 times.");
    assert.match(await page.textContent("#log"), /The turn failed\. The AI model is overloaded\./);
  }, { answer: () => [..."half an answer", failure] });
});

for (const lang of ["en", "ja"]) {
  for (const width of [320, 1000]) {
    test(`axe finds nothing on the page: ${lang}, ${width} px`, () => {
      let fails = false;
      const failure = { error: { kind: "overloaded", kbs: "KBS-5003", message: "The AI model is overloaded.", suggestion: "Try again.", retry: { later: true, after_ms: 60_000 } } };
      return chat(async ({ site }) => {
        const context = await browser.newContext({ locale: lang, viewport: { width, height: 800 }, bypassCSP: true, reducedMotion: "reduce" });
        const page = await openPage(context, `${site.origin}/chat/?lang=${lang}`);
        const violations = async () => {
          await page.evaluate(axe);
          return page.evaluate(async () => (await window.axe.run(document)).violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)]));
        };
        await until(page, () => document.getElementById("connection").dataset.phase === "open");
        assert.deepEqual(await violations(), [], "at the start");
        await page.press("#input", "Enter");
        await isDone(page);
        fails = true;
        await page.press("#input", "Enter");
        await page.waitForSelector("koboshi-error:not([hidden])");
        assert.deepEqual(await violations(), [], "with an answer and an error");
        const isWide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
        assert.equal(isWide, false, "nothing is scrolled sideways");
        await context.close();
      }, { answer: () => (fails ? ["half", failure] : [...ANSWER]), pieceMs: 2 });
    });
  }
}

test("a worker has a session of its own", () => chat(async ({ site, page }) => {
  site.made.set("/worker.js", `import { createSession } from "/web/client/dist/index.js";
    createSession({ url: "ws://" + location.host + "/v1/session" }).send("?").then((result) => postMessage(result.text));`);
  const text = await page.evaluate(() => new Promise((resolve, reject) => {
    const worker = new Worker("/worker.js", { type: "module" });
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = reject;
  }));
  assert.equal(text, ANSWER);
}));
