/** Pictures of the chat page and of the error display for the docs: `node test/browser/screenshots.mjs FOLDER`. */
import { mkdirSync, readFileSync } from "node:fs";
import { rewindAt } from "../../dist/testing/index.js";
import { hasText, isDone, launch, openPage, until } from "./chromium.mjs";
import { openSite } from "./site.mjs";

const folder = process.argv[2] ?? "shots";
mkdirSync(folder, { recursive: true });
const TEXT = {
  en: ["How does the doll get up again?", "Its weight sits low in a round base. When you push it over, the weight is lifted, and gravity pulls it back: the doll rolls upright by itself, every time. Seven times down, eight times up."],
  ja: ["起き上がり小法師はどうやって起き上がりますか。", "底が丸く、重りが低い位置に入っています。倒すと重りが持ち上がり、重力がそれを元に戻すので、人形はひとりでに起き上がります。七転び八起きの縁起物です。"],
};
const browser = await launch();
for (const [name, lang, width, height, colorScheme] of [["light", "en", 1200, 800, "light"], ["dark", "ja", 1200, 800, "dark"], ["light", "ja", 1200, 800, "light"], ["narrow", "ja", 320, 740, "light"], ["narrow", "en", 320, 740, "dark"]]) {
  let fails = false;
  const failure = { error: { kind: "unavailable", kbs: "KBS-1003", message: lang === "ja" ? "AI サービスが一時的に利用できません。" : "The AI service is temporarily unavailable.", suggestion: lang === "ja" ? "しばらく時間をおいてから再度お試しください。" : "Please try again later.", request: "req_7f3a91", retry: { later: true, after_ms: 20000 } } };
  const site = await openSite({ answer: () => (fails ? ["", failure] : [...TEXT[lang][1]]), pieceMs: 22, faults: [rewindAt(30)] });
  const context = await browser.newContext({ viewport: { width, height }, colorScheme, locale: lang });
  const page = await openPage(context, `${site.origin}/chat/?lang=${lang}`);
  const shot = (what) => page.screenshot({ path: `${folder}/chat-${lang}-${name}-${what}.png` });
  await until(page, () => document.getElementById("connection").dataset.phase === "open");
  await shot("start");
  await page.fill("#input", TEXT[lang][0]);
  await page.press("#input", "Enter");
  await hasText(page, 30);
  await until(page, () => document.querySelector(".gone"));
  await new Promise((resolve) => setTimeout(resolve, 350));
  await shot("fall");
  await isDone(page);
  fails = true;
  await page.fill("#input", lang === "ja" ? "もう一度" : "Once more");
  await page.press("#input", "Enter");
  await page.waitForSelector("koboshi-error:not([hidden])");
  await new Promise((resolve) => setTimeout(resolve, 400));
  await shot("error");
  await context.close();
  site.close();
}

// The display in both languages, light and dark, on a page that has nothing else.
const ERRORS = (lang) => [
  { kind: "rate_limited", code: 4004, kbs: "KBS-3001", origin: "server", scope: "turn", recoverable: true, tried: 3, detail: "req_7f3a91", retry: { later: true, afterMs: 31_000 },
    message: lang === "ja" ? "リクエスト制限を超過しました。" : "Too many requests in a short time: the AI provider's rate limit is reached.",
    suggestion: lang === "ja" ? "しばらく待ってから再度お試しください。" : "Please wait a while and try again." },
  { kind: "connection_closed", code: 1003, kbs: "KBS-1005", origin: "server", scope: "turn", recoverable: true, tried: 2, detail: "req_81c05d", retry: { later: true, afterMs: 0 },
    message: lang === "ja" ? "接続が途中で切断されました。" : "The connection was closed in mid-answer.",
    suggestion: lang === "ja" ? "もう一度お試しください。" : "Please try again." },
  { kind: "conversation_not_found", code: 3001, kbs: "KBS-9002", origin: "client", scope: "session", recoverable: false, message: "", retry: { later: false, afterMs: 0 } },
];
const site = await openSite();
site.made.set("/display.css", `body{margin:0;font:15px/1.6 system-ui,"Noto Sans CJK JP",sans-serif;display:grid;grid-template-columns:1fr 1fr}
section{padding:1.5rem;display:grid;gap:1rem;align-content:start;color-scheme:light;background:#fff}section.dark{color-scheme:dark;background:#17181a}koboshi-error{display:block}`);
const cells = ["light", "dark"].flatMap((scheme) => ["en", "ja"].map((lang) => `<section class=${scheme} lang=${lang}>${"<koboshi-error></koboshi-error>".repeat(3)}</section>`));
site.made.set("/display.html", `<!doctype html><html lang=en><meta charset=utf-8><title>display</title><link rel=icon href="data:,"><link rel=stylesheet href=/display.css><script type=module src=/web/client/dist/display/define.js></script>${cells.join("")}</html>`);
for (const scheme of ["light", "dark"]) {
  const context = await browser.newContext({ viewport: { width: 1120, height: 300 }, colorScheme: scheme, locale: "en", deviceScaleFactor: 1 });
  const page = await openPage(context, `${site.origin}/display.html`);
  await page.waitForFunction(() => customElements.get("koboshi-error"));
  await page.evaluate(([en, ja]) => {
    for (const section of document.querySelectorAll("section")) [...section.children].forEach((one, at) => one.show((section.lang === "ja" ? ja : en)[at]));
  }, [ERRORS("en"), ERRORS("ja")]);
  await page.evaluate((shown) => document.querySelectorAll(`section:not(.${shown})`).forEach((other) => other.remove()), scheme);
  await page.screenshot({ path: `${folder}/error-display-${scheme}.png`, fullPage: true });
  await context.close();
}
site.close();
const both = await browser.newPage({ viewport: { width: 1120, height: 300 } });
const image = (scheme) => `<img style="display:block" src="data:image/png;base64,${readFileSync(`${folder}/error-display-${scheme}.png`, "base64")}">`;
await both.setContent(`<body style="margin:0">${image("light")}${image("dark")}`);
await both.screenshot({ path: `${folder}/error-display.png`, fullPage: true });
// The three narrow moments of the chat page in one picture for the docs: a rewind, an error, and the other language.
const narrow = await browser.newPage({ viewport: { width: 1010, height: 740 } });
const shotOf = (name) => `<img style="display:block;flex:none" src="data:image/png;base64,${readFileSync(`${folder}/chat-${name}.png`, "base64")}">`;
await narrow.setContent(`<body style="margin:0;display:flex;gap:25px;background:#8a8a86">${["en-narrow-fall", "ja-narrow-fall", "ja-narrow-error"].map(shotOf).join("")}</body>`);
await narrow.screenshot({ path: `${folder}/chat-narrow.png`, fullPage: true });
await browser.close();
