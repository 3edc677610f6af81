/** React in StrictMode, which mounts everything twice: one connection, and the display as a component. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { build } from "esbuild";
import { launch, openPage, until } from "./chromium.mjs";
import { openSite } from "./site.mjs";

const APP = `
import { createElement as h, StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { KoboshiErrorDisplay, useSession, useSessionState } from "./dist/react/index.js";
function App() {
  const session = useSession({ url: "ws://" + location.host + "/v1/session" });
  const { messages, error, connection } = useSessionState(session);
  window.session = session;
  return h("main", { "data-connection": connection }, h("p", { id: "text" }, messages.map(({ content }) => content).join("|")),
    h(KoboshiErrorDisplay, { error, lang: "ja", onRetry: ({ detail }) => void session.retry(detail.turn) }));
}
createRoot(document.getElementById("root")).render(h(StrictMode, null, h(App)));`;

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

test("StrictMode makes one connection; an error is shown and tried again", async () => {
  let tries = 0;
  const site = await openSite({ answer: () => (tries++ === 0 ? [{ error: { message: "止まっています。", retry: { later: true, after_ms: 0 } } }] : ["whole"]), pieceMs: 5 });
  const bundled = await build({ stdin: { contents: APP, resolveDir: new URL("../..", import.meta.url).pathname }, bundle: true, write: false, format: "esm", define: { "process.env.NODE_ENV": '"development"' } });
  site.made.set("/app.js", bundled.outputFiles[0].text);
  site.made.set("/app.html", '<!doctype html><html lang="en"><title>app</title><link rel="icon" href="data:,"><div id="root"></div><script type="module" src="/app.js"></script></html>');
  const context = await browser.newContext();
  try {
    const page = await openPage(context, `${site.origin}/app.html`);
    await until(page, () => document.querySelector("main")?.dataset.connection === "open");
    assert.equal(site.fake.connections, 1);
    await page.evaluate(() => void window.session.send("?").then(null, () => {}));
    await page.locator("koboshi-error [part=retry]").click();
    await until(page, () => document.getElementById("text").textContent === "?|whole");
    assert.equal(await page.locator("koboshi-error").isVisible(), false);
    assert.equal(site.fake.connections, 1);
    assert.deepEqual(page.problems, []);
  } finally {
    await context.close();
    site.close();
  }
});
