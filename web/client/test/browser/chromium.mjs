/** Debian's Chromium, headless, and what a page may not do in a test: throw, or log an error. */
import { chromium } from "playwright-core";

const FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

/** `app.example` is this machine: a page of elsewhere, which needs a network. */
export const launch = () =>
  chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: [...FLAGS, "--host-resolver-rules=MAP app.example 127.0.0.1"] });

/** A page that fails the test if it throws. */
export async function openPage(context, address) {
  const page = await context.newPage();
  page.problems = [];
  page.on("pageerror", (error) => page.problems.push(String(error)));
  page.on("console", (message) => {
    // A browser reports every refused connection itself.
    if (message.type() === "error" && !/WebSocket|ERR_/.test(message.text())) page.problems.push(message.text());
  });
  await page.goto(address);
  return page;
}

/** Asks again until it holds. */
export async function until(page, condition, argument, what = String(condition)) {
  try {
    await page.waitForFunction(condition, argument, { timeout: 20_000, polling: 50 });
  } catch (error) {
    throw new Error(`never happened: ${what}\n${await page.evaluate(() => document.body.innerText)}`, { cause: error });
  }
}

export const answers = (page) => page.$$eval(".answer > p", (all) => all.map((one) => [...one.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data).join("")));
export const isDone = (page) => until(page, () => document.querySelector(".answer") && document.getElementById("stop").hidden && !document.querySelector(".pending"), undefined, "the answer is done");
export const hasText = (page, length = 4) => until(page, (most) => (document.querySelector(".answer:last-of-type p")?.textContent.length ?? 0) >= most, length, `an answer of ${length} letters`);
