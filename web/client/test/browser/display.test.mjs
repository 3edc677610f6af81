/** The error display in a real browser: words, keyboard, announcements, narrow and wide, light and dark, and axe without a violation. */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { launch, openPage, until } from "./chromium.mjs";
import { openSite } from "./site.mjs";

const axe = readFileSync(new URL("../../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
/** Screenshots are written only if a folder is named. */
const shots = process.env.KOBOSHI_SCREENSHOTS;
const PAGE = (lang) => `<!doctype html><html lang="${lang}"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark"><title>display</title><link rel="icon" href="data:,">
<link rel="stylesheet" href="/page.css"><script type="module" src="/web/client/dist/display/define.js"></script><main><h1>display</h1><button id="before">before</button><koboshi-error id="one"></koboshi-error><koboshi-error id="two"></koboshi-error><koboshi-error id="three"></koboshi-error></main></html>`;
const CSS = "body{font:16px/1.6 system-ui,'Noto Sans CJK JP',sans-serif;margin:1rem}koboshi-error{margin-block:1rem;max-width:40rem}";

const limited = (lang, extra = {}) => ({
  name: "KoboshiError", kind: "rate_limited", code: 4004, kbs: "KBS-3001", origin: "server", scope: "turn", turn: 14, recoverable: true, detail: "req_7f3a91",
  message: lang === "ja" ? "リクエスト制限を超過しました。" : "Too many requests in a short time: the AI provider's rate limit is reached.",
  suggestion: lang === "ja" ? "しばらく待ってから再度お試しください。" : "Please wait a while and try again.",
  retry: { later: true, afterMs: 31_000 }, ...extra,
});
const seed = { errorCode: "MIRA-4002", message: "コンテキストがトークン制限を超過しています", suggestion: "質問を短くするか、会話をリセットしてください。", retryable: false, retryAfterSeconds: null };
const lost = { kind: "conversation_not_found", code: 3001, kbs: "KBS-9002", origin: "client", scope: "session", recoverable: false, message: "the session is unknown", retry: { later: false, afterMs: 0 } };

let browser;
let site;
before(async () => {
  [browser, site] = [await launch(), await openSite()];
  for (const lang of ["en", "ja"]) site.made.set(`/${lang}.html`, PAGE(lang));
  site.made.set("/page.css", CSS);
});
after(async () => {
  await browser.close();
  site.close();
});

async function display(run, { lang = "en", ...options } = {}) {
  const context = await browser.newContext({ locale: lang, timezoneId: "Asia/Tokyo", bypassCSP: true, ...options });
  const page = await openPage(context, `${site.origin}/${lang}.html`);
  await page.waitForFunction(() => customElements.get("koboshi-error"));
  await page.evaluate(() => {
    window.spoken = [];
    for (const region of document.querySelectorAll("[data-koboshi]")) {
      new MutationObserver(() => region.textContent && window.spoken.push([region.dataset.koboshi, region.textContent])).observe(region, { childList: true, characterData: true, subtree: true });
    }
  });
  const show = (error, id = "one") => page.evaluate(([to, given]) => document.getElementById(to).show(given), [id, error]);
  const part = (name, id = "one") => page.locator(`#${id} [part=${name}]`);
  try {
    await run({ page, context, show, part });
    assert.deepEqual(page.problems, []);
  } finally {
    await context.close();
  }
}

test("it shows what failed, what to do, when, and a code to quote", () => display(async ({ page, show, part }) => {
  await show(limited("en"));
  await page.evaluate(() => (document.getElementById("one").tried = 3));
  const text = await page.evaluate(() => [...document.getElementById("one").shadowRoot.querySelectorAll("p,button,.countdown,.code")].filter((one) => !one.hidden && one.offsetParent).map((one) => one.textContent.trim()));
  assert.deepEqual(text.slice(0, 4), ["Too many requests in a short time: the AI provider's rate limit is reached.", "Tried 3 times.", "Please wait a while and try again.", "Try again"]);
  assert.match(text[4], /^You can try again in (31|30) seconds\.$/);
  assert.equal(await part("code").textContent(), "KBS-3001 · req_7f3a91");
}));

test("a button that waits keeps the focus, says how long, and sends nothing; then one press is one event", () => display(async ({ page, show, part }) => {
  await page.evaluate(() => {
    window.asked = [];
    document.addEventListener("koboshi-retry", ({ detail }) => window.asked.push(detail));
  });
  await page.focus("#before");
  await show(limited("en", { retry: { later: true, afterMs: 1_500 } }));
  assert.equal(await page.evaluate(() => document.activeElement.id), "before", "an error takes no focus");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  assert.equal(await part("retry").getAttribute("aria-disabled"), "true");
  assert.equal(await page.evaluate(() => document.getElementById("one").shadowRoot.activeElement?.part.value), "retry");
  await until(page, () => window.spoken.some(([, text]) => text === "You can try again now."));
  assert.equal(await part("retry").getAttribute("aria-disabled"), "false");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Enter");
  const asked = await page.evaluate(() => window.asked);
  assert.deepEqual(asked.map(({ turn, action }) => [turn, action]), [[14, "retry"]]);
  assert.match(asked[0].id, /^y-/);
  assert.equal(await part("retry").textContent(), "Trying again…");
  const spoken = await page.evaluate(() => window.spoken);
  assert.equal(spoken.filter(([kind]) => kind === "assertive").length, 1, "one announcement per episode");
  assert.match(spoken.filter(([kind]) => kind === "polite")[0][1], /^You can try again in \d seconds?\.$/);
}));

test("dismiss gives the focus back", () => display(async ({ page, show, part }) => {
  await page.focus("#before");
  await show(limited("en"));
  await part("dismiss").focus();
  await page.keyboard.press("Enter");
  assert.deepEqual(await page.evaluate(() => [document.activeElement.id, document.getElementById("one").hidden]), ["before", true]);
}));

test("an error without another try has no button; kinds with an action of their own have that", () => display(async ({ show, part }) => {
  await show(limited("en", { retry: { later: false, afterMs: 0 } }));
  assert.equal(await part("retry").isVisible(), false);
  await show(seed, "two");
  assert.equal(await part("retry", "two").textContent(), "Shorten the conversation");
  assert.equal(await part("message", "two").textContent(), seed.message);
  await show(lost, "three");
  assert.equal(await part("retry", "three").textContent(), "Start a new conversation");
  assert.equal(await part("message", "three").textContent(), "This conversation has ended and is no longer on the server.");
}));

test("a long wait is a time of day, a longer one has its date", () => display(async ({ show, part }) => {
  await show(limited("ja", { retry: { later: true, afterMs: 3_600_000 } }));
  assert.match(await part("countdown").textContent(), /^\d{1,2}:\d{2} に再試行できます。$/);
  await show(limited("ja", { retry: { later: true, afterMs: 3 * 86_400_000 } }), "two");
  assert.match(await part("countdown", "two").textContent(), /^\d{1,2}月\d{1,2}日 \d{1,2}:\d{2} に再試行できます。$/);
}, { lang: "ja" }));

test("offline the button says why it waits", () => display(async ({ context, show, part }) => {
  await show(limited("en", { retry: { later: true, afterMs: 0 } }));
  await context.setOffline(true);
  assert.equal(await part("countdown").textContent(), "This device is offline. You can try again when it is online.");
  assert.equal(await part("retry").getAttribute("aria-disabled"), "true");
  await context.setOffline(false);
  assert.equal(await part("retry").getAttribute("aria-disabled"), "false");
}));

test("auto tries by itself, at most three times, and can be stopped", () => display(async ({ page, show }) => {
  await page.evaluate(() => {
    window.asked = 0;
    const one = document.getElementById("one");
    one.auto = true;
    one.addEventListener("koboshi-retry", () => {
      window.asked++;
      setTimeout(() => one.show({ errorCode: "KBS-5003", message: `failed ${window.asked}`, retryable: true, retryAfterSeconds: 0 }));
    });
  });
  await show({ errorCode: "KBS-5003", message: "failed", retryable: true, retryAfterSeconds: 0 });
  await until(page, () => window.asked === 3);
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  assert.equal(await page.evaluate(() => window.asked), 3);
  await page.evaluate(() => document.getElementById("one").clear());
  await show({ errorCode: "KBS-5003", message: "failed", retryable: true, retryAfterSeconds: 0 });
  await page.locator("#one .stop").click();
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  assert.equal(await page.evaluate(() => window.asked), 3);
}));

test("what it tries by itself is announced when it begins and when it ends, not in between", () => display(async ({ page, show }) => {
  await page.evaluate(() => {
    window.asked = 0;
    const one = document.getElementById("one");
    one.auto = true;
    one.addEventListener("koboshi-retry", () => {
      window.asked++;
      setTimeout(() => one.show({ errorCode: "KBS-5003", message: "The model is overloaded.", retryable: true, retryAfterSeconds: 0 }));
    });
  });
  await show({ errorCode: "KBS-5003", message: "The model is overloaded.", retryable: true, retryAfterSeconds: 0 });
  await until(page, () => window.asked === 3);
  await new Promise((resolve) => setTimeout(resolve, 500));
  const spoken = await page.evaluate(() => window.spoken.filter(([kind]) => kind === "assertive"));
  assert.equal(spoken.length, 2, JSON.stringify(spoken));
  await show({ errorCode: "KBS-3001", message: "Too many requests.", retryable: true, retryAfterSeconds: 9 });
  await until(page, () => window.spoken.at(-1)[1].includes("Too many requests."));
}));

test("the code is copied, and the page may copy it in its own way", () => display(async ({ page, context, show }) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.evaluate(() => document.getElementById("one").addEventListener("koboshi-copy", ({ detail }) => (window.copied = detail.text)));
  await show(limited("en"));
  await page.locator("#one .copy").click();
  await until(page, () => window.copied !== undefined && document.getElementById("one").shadowRoot.querySelector(".copy").textContent === "Copied");
  assert.equal(await page.evaluate(() => window.copied), "KBS-3001 · req_7f3a91");
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), "KBS-3001 · req_7f3a91");
}));

test("slots, phrases, tone and the compact form are the page's", () => display(async ({ page, show }) => {
  await page.evaluate(() => {
    const one = document.getElementById("one");
    one.innerHTML = '<b slot="message">Our own words</b>';
    one.phrases = { retry: "Once more, please" };
    [one.tone, one.compact] = ["info", true];
  });
  await show({ ...limited("en"), retry: { later: true, afterMs: 0 } });
  const shown = await page.evaluate(() => {
    const one = document.getElementById("one");
    const slot = one.shadowRoot.querySelector("slot[name=message]");
    return [slot.assignedNodes().map((node) => node.textContent), one.shadowRoot.querySelector("[part=retry]").textContent, one.getAttribute("tone"), one.hasAttribute("compact")];
  });
  assert.deepEqual(shown, [["Our own words"], "Once more, please", "info", true]);
  const heights = await page.evaluate(() => {
    const one = document.getElementById("one");
    const compact = one.offsetHeight;
    one.compact = false;
    return [compact, one.offsetHeight];
  });
  assert.ok(heights[0] < heights[1], String(heights));
}));

for (const lang of ["en", "ja"]) {
  for (const [look, width, options] of [["narrow", 320, {}], ["wide", 1000, {}], ["dark", 480, { colorScheme: "dark" }], ["forced", 480, { forcedColors: "active" }]]) {
    test(`axe finds nothing and nothing is cut off: ${lang}, ${look}`, () => display(async ({ page, show }) => {
      await show(limited(lang));
      await show(seed, "two");
      await show(lost, "three");
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(overflow <= 0, `${overflow} px too wide`);
      const targets = await page.evaluate(() => [...document.querySelectorAll("koboshi-error")].flatMap((one) => [...one.shadowRoot.querySelectorAll("button")]).filter((one) => one.offsetParent).map((one) => one.getBoundingClientRect()).filter(({ width, height }) => width < 24 || height < 24).length);
      assert.equal(targets, 0, "targets of at least 24 px");
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() => window.axe.run());
      assert.deepEqual(violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join()}`), []);
      if (shots) {
        mkdirSync(shots, { recursive: true });
        await page.screenshot({ path: `${shots}/display-${lang}-${look}.png` });
      }
    }, { lang, viewport: { width, height: 720 }, ...options }));
  }
}

test("with reduced motion nothing moves", () => display(async ({ page, show }) => {
  await show(limited("en"));
  const moving = await page.evaluate(() => [...document.getElementById("one").shadowRoot.querySelectorAll("*")].map((part) => getComputedStyle(part)).filter(({ animationName, transitionDuration }) => animationName !== "none" || !/^0s(, 0s)*$/.test(transitionDuration)).length);
  assert.equal(moving, 0);
}, { reducedMotion: "reduce" }));
