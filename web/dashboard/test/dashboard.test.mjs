/** The dashboard of a real gateway in a real browser. It needs the program: `KOBOSHI=target/debug/koboshi`. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { launch, openPage, says, until } from "./chromium.mjs";
import { openGateway } from "./gateway.mjs";

const binary = process.env.KOBOSHI;
const skip = binary ? false : "no gateway was named";
const axe = readFileSync(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
const PAGES = ["now", "faults", "agents", "spend", "people", "config"];
/** One target falls each time, the next one answers. The breaker stays out of it, so that a fall can be repeated. */
const ROUTES = "language: en\nproviders: {shaky: {kind: sim}}\nbreaker: {preset: consecutive, consecutive_failures: 254}\nroutes:\n  assistant: [shaky/fail-503, sim/ok]\n  lost: [shaky/fail-503]\n  paid: [shaky/quota, sim/ok]\n";
/** SHA-256 of `test`. */
const WITH_KEY = `${ROUTES}admin: {sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08}\n`;

let browser;
before(async () => {
  if (binary) browser = await launch();
});
after(() => browser?.close());

/** A gateway and its page; the page must end without an error, a violation or a request to elsewhere. */
function dashboard(what, run, { config = ROUTES, command = "serve", locale = "en-US", files = {}, ...looks } = {}) {
  test(what, { skip, timeout: 90_000 }, async () => {
    const gateway = await openGateway(binary, config, command, files);
    const context = await browser.newContext({ locale, viewport: { width: 1280, height: 800 }, reducedMotion: "reduce", ...looks });
    try {
      const page = await openPage(context, `${gateway.origin}/koboshi/`);
      await run({ gateway, page, context });
      assert.deepEqual(page.problems, []);
      assert.deepEqual(await page.evaluate(() => window.violations), []);
    } finally {
      await context.close();
      await gateway.close();
    }
  });
}

const goTo = async (page, name) => {
  await page.click(`nav a[href="#/${name}"]`);
  await page.waitForSelector(`nav a[href="#/${name}"][aria-current]`);
};
const confirm = async (page) => {
  await page.click("dialog.question button[type=submit]");
  await until(page, () => !document.querySelector("dialog.question"));
};
const targetState = (page, name, words) => until(page, ([name, words]) => [...document.querySelectorAll(".targets > li")].some((row) => row.querySelector(".link-button")?.textContent === name && row.querySelector(".badge").textContent.includes(words)), [name, words]);

dashboard("a fall is seen live, explained, cooled and resumed by clicking", async ({ gateway, page }) => {
  await says(page, "Everything is on its feet");
  await says(page, "Nothing has fallen yet.");
  await goTo(page, "faults");
  await says(page, "Nothing has fallen yet.");
  assert.equal(await gateway.chat("assistant"), 200);
  await page.waitForSelector(".rows .row");
  await page.click(".rows .row >> nth=-1");
  const sheet = page.locator("dialog.sheet");
  const said = await sheet.innerText();
  for (const part of ["unavailable KBS-", "The AI service is temporarily unavailable", "the provider", "What was tried", "turned to the next target", "A whole answer. The client noticed nothing but the time.", "Status 503", "What to do", "Koboshi tries it again by itself", "Route assistant"]) assert.ok(said.includes(part), `${part}\n${said}`);
  assert.ok((await sheet.locator(".timeline li").count()) >= 3, said);

  await sheet.getByRole("button", { name: "Cool…" }).click();
  await says(page, "Put shaky/fail-503 into cooldown?");
  await page.fill("dialog.question input[name=reason]", "maintenance at the vendor");
  await confirm(page);
  await until(page, () => document.querySelector("dialog.sheet")?.innerText.includes("Resume"));
  await page.keyboard.press("Escape");
  await until(page, () => !document.querySelector("dialog"));
  await goTo(page, "now");
  await says(page, "No target is left for lost");
  await targetState(page, "shaky/fail-503", "resting");
  await says(page, "maintenance at the vendor");
  await until(page, () => /left/.test(document.querySelector(".target-why")?.innerText ?? ""));

  await page.click(".target-why button.primary");
  await says(page, "Resume shaky/fail-503?");
  await confirm(page);
  await targetState(page, "shaky/fail-503", "healthy");
  await says(page, "Everything is on its feet");
  assert.equal(await page.textContent("#survived"), "1");
});

dashboard("a breaker is forced open and released, and a quota shows until when it rests", async ({ gateway, page }) => {
  assert.equal(await gateway.chat("paid"), 200);
  await targetState(page, "shaky/quota", "resting");
  await page.click(".targets .link-button >> text=sim/ok");
  const act = async (action) => {
    await page.click("dialog.sheet button >> text=Breaker…");
    await page.check(`input[value=${action}]`);
    await confirm(page);
  };
  await act("open");
  await until(page, () => document.querySelector("dialog.sheet .badge").textContent.includes("forced open"));
  await act("release");
  await until(page, () => document.querySelector("dialog.sheet .badge").textContent.includes("healthy"));
});

dashboard("a reload of the page and a restart of the server lose nothing", async ({ gateway, page }) => {
  await goTo(page, "faults");
  await gateway.chat("lost");
  await page.waitForSelector(".rows .row");
  await page.reload();
  await page.waitForSelector(".rows .row");
  const before = await page.locator(".rows .row").count();
  await gateway.stop();
  await says(page, "The gateway does not answer");
  await gateway.start();
  await until(page, () => document.querySelector(".link-state.live"));
  assert.equal(await page.locator(".rows .row").count(), before);
  await gateway.chat("lost");
  await until(page, (before) => document.querySelectorAll(".rows .row").length > before, before);
});

dashboard("a wrong key is refused, the right one signs in, and a change without its token changes nothing", async ({ gateway, page, context }) => {
  await says(page, "Admin key");
  await page.fill("input[name=key]", "wrong");
  await page.press("input[name=key]", "Enter");
  await says(page, "The admin key of this gateway is missing or wrong.");
  await page.fill("input[name=key]", "test");
  await page.press("input[name=key]", "Enter");
  await says(page, "Everything is on its feet");
  const [cookie] = await context.cookies();
  assert.deepEqual([cookie.httpOnly, cookie.sameSite, cookie.path], [true, "Strict", "/koboshi"]);
  assert.ok(!cookie.value.includes("test"));
  assert.equal(await page.evaluate(() => document.cookie), "");
  const change = (token) => page.evaluate(async (token) => (await fetch("/koboshi/cooldowns", { method: "POST", headers: { "content-type": "application/json", ...(token && { "x-koboshi-csrf": token }) }, body: JSON.stringify({ key: "target:sim/ok", action: "clear" }) })).status, token);
  assert.equal(await change(null), 403);
  assert.equal(await change("made up"), 403);
  await page.reload();
  await says(page, "Everything is on its feet");
  // Its own changes carry the token.
  await page.click(".targets .link-button >> text=sim/ok");
  await page.click("dialog.sheet button >> text=Cool…");
  await confirm(page);
  await page.keyboard.press("Escape");
  await targetState(page, "sim/ok", "resting");
  // A restart ends the session: the page asks for the key again, and goes on.
  await gateway.stop();
  await gateway.start();
  await says(page, "Admin key");
  await page.fill("input[name=key]", "test");
  await page.press("input[name=key]", "Enter");
  await targetState(page, "sim/ok", "resting");
  await page.click("text=Sign out");
  await says(page, "Admin key");
}, { config: WITH_KEY });

dashboard("every page speaks Japanese and English", async ({ gateway, page }) => {
  await says(page, "すべて正常に動いています");
  assert.equal(await page.getAttribute("html", "lang"), "ja");
  await gateway.chat("assistant");
  const titles = ["すべて正常", "障害", "管理しているエージェントはありません", "内訳", "ノード", "check の結果"];
  for (const [index, name] of PAGES.entries()) {
    await goTo(page, name);
    await says(page, titles[index]);
  }
  await goTo(page, "faults");
  await page.click(".rows .row >> nth=-1");
  await says(page, "次のターゲットに切り替え");
  await says(page, "AI サービス");
  await page.keyboard.press("Escape");
  await page.selectOption("select[aria-label=言語]", "en");
  await says(page, "entries");
  await page.reload();
  await says(page, "entries");
}, { locale: "ja-JP" });

for (const [look, options] of Object.entries({ light: { colorScheme: "light" }, dark: { colorScheme: "dark" }, "forced colours": { forcedColors: "active" }, "360 pixels": { viewport: { width: 360, height: 740 } } })) {
  dashboard(`no page violates axe's rules, and none is wider than the window: ${look}`, async ({ gateway, page }) => {
    for (const route of ["assistant", "paid", "lost"]) await gateway.chat(route);
    // The policy of the page forbids it to be added as a script: it is evaluated from outside.
    await page.evaluate(axe);
    const check = async (where) => {
      const { violations } = await page.evaluate(() => window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
      assert.deepEqual(violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`), [], where);
      const [wide, window_] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
      assert.ok(wide <= window_, `${where}: ${wide} > ${window_}`);
    };
    for (const name of PAGES) {
      await goTo(page, name);
      await until(page, () => document.querySelector("main h1"));
      await check(name);
    }
    await goTo(page, "faults");
    await page.click(".rows .row >> nth=0");
    await page.waitForSelector("dialog.sheet");
    await check("a fault");
    await page.click("dialog.sheet button >> text=Cool…");
    await check("a question");
  }, options);
}

dashboard("ten thousand rows are a few elements, and the keyboard reaches the last one", async ({ page }) => {
  const at = Date.parse("2026-01-01T00:00:00Z");
  const entries = Array.from({ length: 10_000 }, (_, n) => ({ at: new Date(at + n * 1000).toISOString(), node: "elsewhere", what: "fault", kind: n % 3 ? "rate_limited" : "unavailable", key: "target:shaky/fail-503", agent: null, text: `fall number ${n}`, data: { target: "shaky/fail-503", remedy: "elsewhere" } }));
  await page.route("**/koboshi/journal?*", (route) => route.fulfill({ json: { entries } }));
  await page.reload();
  await goTo(page, "faults");
  await says(page, "10,000 entries");
  await page.focus(".rows .row");
  for (const key of ["ArrowDown", "ArrowDown", "PageDown", "ArrowUp"]) await page.keyboard.press(key);
  await page.keyboard.press("End");
  await says(page, "fall number 0");
  assert.ok((await page.locator(".rows .row").count()) < 60);
  await page.keyboard.press("Enter");
  await page.waitForSelector("dialog.sheet");
  await page.keyboard.press("Escape");
  await until(page, () => document.activeElement?.classList.contains("row"));
  await page.selectOption("select >> nth=3", "rate_limited");
  await says(page, "6,666 entries");
  await page.fill("input[type=search] >> nth=0", "nothing like it");
  await says(page, "No entry fits these filters.");
});

dashboard("rows that come in front move nobody who reads further down", async ({ gateway, page }) => {
  for (let n = 0; n < 10; n++) await gateway.chat("assistant");
  await goTo(page, "faults");
  await until(page, () => document.querySelectorAll(".rows .row").length > 12);
  await page.setViewportSize({ width: 1280, height: 520 });
  await page.evaluate(() => (document.querySelector(".rows").scrollTop = 440));
  const shown = () => page.evaluate(() => {
    const top = document.querySelector(".rows").getBoundingClientRect().top;
    return [...document.querySelectorAll(".rows .row")].find((row) => row.getBoundingClientRect().top >= top).textContent;
  });
  const before = await shown();
  const setSize = () => page.evaluate(() => Number(document.querySelector("[aria-setsize]").getAttribute("aria-setsize")));
  const size = await setSize();
  await gateway.chat("assistant");
  await until(page, (size) => Number(document.querySelector("[aria-setsize]").getAttribute("aria-setsize")) > size, size);
  assert.equal(await shown(), before);
});

dashboard("the config is checked, reloaded, and refused where it is wrong; the gateway is drained", async ({ gateway, page }) => {
  await goTo(page, "config");
  await says(page, "The config can be used.");
  gateway.configure(ROUTES.replace("lost:", "found:"));
  const reload = async () => {
    await page.click("button >> text=Reload…");
    await confirm(page);
  };
  // The gateway follows its file by itself too: whichever was first, the new one is in use.
  await reload();
  await until(page, () => /The new config is in use|Nothing has changed/.test(document.body.innerText));
  await says(page, "routes.found");
  gateway.configure("routs: {}\n");
  await reload();
  await says(page, "Refused. The old config goes on:");
  await says(page, "1 problem");
  await says(page, "routs");
  await page.fill("input[type=search]", "max_attempts");
  await until(page, () => document.querySelectorAll(".settings:last-of-type > div").length < 5);
  await page.click("button >> text=Drain and stop…");
  await confirm(page);
  await gateway.ended();
  await says(page, "The gateway does not answer");
});

dashboard("who is connected, and which gateways share the store", async ({ page }) => {
  await goTo(page, "people");
  await says(page, "No conversation is connected.");
  await page.evaluate(() => {
    window.talk = new WebSocket(`ws://${location.host}/ws`);
    window.talk.onopen = () => window.talk.send(JSON.stringify({ type: "chat", content: "hello", route: "sim/slow" }));
  });
  await until(page, () => document.querySelector("section[aria-labelledby=sessions-title] tbody tr")?.innerText.includes("local"));
  const nodes = await page.innerText("section[aria-labelledby=nodes-title]");
  assert.match(nodes, /this one/);
  assert.match(nodes, /\b[0-9a-f]{8}\b/, "the digits of its config");
  assert.match(nodes, /1 of 1 running/);
  await says(page, "No supervisor has used this store.");
  await says(page, "Clients need no key here.");
}, { config: `${ROUTES}serve: {chat: true}\n` });

dashboard("agents: what runs, what it writes, stopped and started by clicking", async ({ page }) => {
  await goTo(page, "agents");
  await says(page, "talker/site");
  const state = (words) => until(page, (words) => document.querySelector(".agents .badge")?.textContent.includes(words), words);
  await state("running");
  await page.click("button >> text=Output");
  await says(page, "line from the agent");
  await page.keyboard.press("Escape");
  await page.click("button >> text=Stop…");
  await confirm(page);
  await state("stopped");
  await until(page, () => document.querySelector(".runline button"));
  await page.click("button >> text=Start…");
  await confirm(page);
  await state("running");
  // The page of nodes counts the supervisor of this process, with its agents.
  await goTo(page, "people");
  const nodes = () => page.innerText("section[aria-labelledby=nodes-title]");
  await until(page, () => document.querySelector("section[aria-labelledby=nodes-title]")?.innerText.includes("1 of 1\t"));
  assert.match(await nodes(), /Supervisors · 1 of 1 running/);
  assert.match(await nodes(), /supervisor\/[^\s]+:\d+/);
}, { command: "up", config: `${ROUTES}agents:\n  talker:\n    command: [sh, -c, "echo line from the agent; exec sleep 1000"]\n    projects: [site]\n    survives: false\n` });

/** A price that one request feels: `sim/ok` has it, the other targets have none. */
const PRICED = { "models.yaml": "prices: [{match: sim/ok, input: 100000, output: 200000}]\n" };
/** SHA-256 of `laptop` and of `intern`: the budget of one is spent with its first request. */
const SPENDING = `${WITH_KEY}models_file: models.yaml
spend: {currency: EUR}
keys:
  laptop: {sha256: 5eec0dc419aa8337bf725f026fda9c78c1cb1c642eeaff9d6e1112f37783e942, rate: 600, budget: {month: 1000000}}
  intern: {sha256: fbb5a0ea9135737942534281418105e440b23376baa51e59e375f3a1a5c61963, routes: [assistant], budget: {day: 1}}
`;

dashboard("what was spent: by key, model and day, with budgets, and what no one knows the price of", async ({ gateway, page }) => {
  const bearer = (key) => ({ authorization: `Bearer ${key}` });
  await page.fill("input[name=key]", "test");
  await page.press("input[name=key]", "Enter");
  await goTo(page, "spend");
  await says(page, "Nothing was spent in these days.");
  for (const [key, model] of [["laptop", "assistant"], ["laptop", "assistant"], ["intern", "assistant"]]) assert.equal(await gateway.chat(model, bearer(key)), 200);
  assert.equal(await gateway.chat("assistant", bearer("intern")), 429, "its budget is spent");
  const read = async (by) => (await fetch(`${gateway.origin}/koboshi/spend?by=${by}`, { headers: bearer("test") })).json();
  const { total, rows } = await read("key");
  const euros = (units) => new Intl.NumberFormat("en-GB", { style: "currency", currency: "EUR", currencyDisplay: "narrowSymbol", minimumFractionDigits: 2, maximumFractionDigits: units < 1 ? 4 : 2 }).format(units);
  await until(page, (cost) => document.querySelector(".tiles dd")?.textContent === cost, euros(total.cost));
  const line = (name) => page.locator(`.spend tbody tr:has(th:text-is("${name}"))`).innerText();
  for (const { name, cost } of rows) assert.ok((await line(name)).includes(euros(cost)), name);
  await says(page, "Spent: requests with this key are refused until");
  assert.equal(await page.locator(".meter.bad").count(), 1);
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document));
  assert.deepEqual(violations.map(({ id }) => id), []);
  await page.click(".choices button >> text=Model");
  await until(page, () => document.querySelector(".spend thead th").textContent === "Model");
  assert.ok((await line("sim/ok")).includes(euros(total.cost)));
  await page.click(".choices button >> text=Day");
  await until(page, () => document.querySelector(".spend thead th").textContent === "Day");
  await page.waitForSelector(".chart canvas");
  await page.selectOption("main select", "today");
  await until(page, () => document.querySelector(".chart") === null);
  await goTo(page, "people");
  const keys = page.locator("section[aria-labelledby=keys-title]");
  await until(page, () => document.querySelector("section[aria-labelledby=keys-title]")?.innerText.includes("600 a minute"));
  await until(page, () => document.querySelector("section[aria-labelledby=keys-title]")?.innerText.includes("this month:"));
  assert.ok((await keys.innerText()).includes("today: "));
}, { config: SPENDING, files: PRICED });

dashboard("tokens without a price are unknown, and not free", async ({ gateway, page }) => {
  await gateway.chat("assistant");
  await goTo(page, "spend");
  await until(page, () => document.querySelector(".tiles dd")?.textContent === "unknown");
  await says(page, "whose price is not known");
});
