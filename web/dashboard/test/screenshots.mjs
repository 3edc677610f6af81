/** Every page, light and dark, narrow and wide, with something on it: `KOBOSHI=target/debug/koboshi node test/screenshots.mjs FOLDER`. */
import { mkdirSync } from "node:fs";
import { launch, openPage, says } from "./chromium.mjs";
import { openGateway } from "./gateway.mjs";

const out = process.argv[2] ?? "/tmp/dashboard";
mkdirSync(out, { recursive: true });
const CONFIG = `providers:
  openai: {kind: sim}
  anthropic: {kind: sim}
  groq: {kind: sim}
breaker: {preset: consecutive, consecutive_failures: 110, open: {initial: 10m, max: 10m}}
routes:
  assistant: [openai/quota, anthropic/ok]
  reviewer: [groq/fail-503, anthropic/ok]
  nightly: [openai/flap, anthropic/ok]
agents:
  reviewer:
    command: [sh, -c, "for n in 1 2 3 4; do echo \\"reviewing pull request $n of 4: src/session.ts\\"; done; sleep 1; echo done; exit 0"]
    projects: [website, api]
    survives: false
    when: {schedule: every 4s}
  translator:
    command: [sh, -c, "echo translating docs/guide.md; exec sleep 1000"]
    projects: [docs]
    survives: false
`;
const gateway = await openGateway(process.env.KOBOSHI, CONFIG, "up");
const fresh = await openGateway(process.env.KOBOSHI, "admin: {sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08}\n");
const browser = await launch();
try {
  for (let n = 0; n < 60; n++) await gateway.chat(["assistant", "reviewer", "nightly"][n % 3], n % 3 === 1 ? { "x-koboshi-agent": "reviewer/website" } : {});
  for (const [name, options] of Object.entries({
    "wide-light": { viewport: { width: 1280, height: 860 }, colorScheme: "light" },
    "wide-dark": { viewport: { width: 1280, height: 860 }, colorScheme: "dark", locale: "ja-JP" },
    "narrow-light": { viewport: { width: 360, height: 780 }, colorScheme: "light", locale: "ja-JP" },
    "narrow-dark": { viewport: { width: 360, height: 780 }, colorScheme: "dark" },
  })) {
    const context = await browser.newContext({ locale: "en-GB", reducedMotion: "reduce", deviceScaleFactor: name.startsWith("wide") ? 1 : 2, ...options });
    const page = await openPage(context, `${gateway.origin}/koboshi/`);
    const go = async (to) => {
      await page.click(`nav a[href="#/${to}"]`);
      await page.waitForSelector(`nav a[href="#/${to}"][aria-current]`);
    };
    await says(page, "assistant");
    // The chart needs a few samples with something in them.
    for (let n = 0; n < (name.startsWith("wide") ? 26 : 5); n++) {
      for (let m = 0; m < 3 + ((n * 7) % 9); m++) await gateway.chat(["assistant", "reviewer", "nightly"][m % 3]);
      await page.waitForTimeout(1000);
    }
    await page.screenshot({ path: `${out}/${name}-now.png`, fullPage: true });
    await page.screenshot({ path: `${out}/${name}-now-fold.png` });
    for (const to of ["faults", "agents", "spend", "people", "config"]) {
      await go(to);
      await page.waitForTimeout(700);
      await page.screenshot({ path: `${out}/${name}-${to}.png` });
    }
    await go("faults");
    await page.click(".rows .row:has-text('quota') >> nth=0").catch(() => page.click(".rows .row >> nth=-1"));
    await page.waitForTimeout(300);
    await page.screenshot({ path: `${out}/${name}-fault.png` });
    await page.click("dialog.sheet .buttons button >> nth=1");
    await page.waitForTimeout(200);
    await page.screenshot({ path: `${out}/${name}-question.png` });
    // A gateway that has seen nothing yet, behind a sign-in.
    const empty = await openPage(context, `${fresh.origin}/koboshi/`);
    await empty.waitForSelector("input[name=key]");
    await empty.screenshot({ path: `${out}/${name}-sign-in.png` });
    await empty.fill("input[name=key]", "test");
    await empty.press("input[name=key]", "Enter");
    await empty.waitForSelector("nav");
    for (const to of ["now", "faults", "agents", "spend", "people"]) {
      await empty.click(`nav a[href="#/${to}"]`);
      await empty.waitForTimeout(500);
      await empty.screenshot({ path: `${out}/${name}-empty-${to}.png` });
    }
    if (page.problems.length) console.log(name, page.problems);
    await context.close();
  }
} finally {
  await browser.close();
  await gateway.close();
  await fresh.close();
}
