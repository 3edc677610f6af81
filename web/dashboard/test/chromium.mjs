/** Debian's Chromium, and a page that keeps what went wrong in it: errors, violations of its policy, requests to other hosts. */
import { readFileSync } from "node:fs";
import { chromium } from "playwright-core";

const FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

export const launch = () => chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: FLAGS });

export async function openPage(context, address) {
  const page = await context.newPage();
  page.problems = [];
  page.on("pageerror", (error) => page.problems.push(String(error)));
  page.on("console", (message) => {
    // A browser reports every refused request and lost connection itself.
    if (message.type() === "error" && !/ERR_|status of 40[13]/.test(message.text())) page.problems.push(message.text());
  });
  page.on("request", (request) => {
    const { origin, protocol } = new URL(request.url());
    if (protocol !== "data:" && origin !== new URL(address).origin) page.problems.push(`a request to ${origin}`);
  });
  await page.addInitScript(() => {
    window.violations = [];
    document.addEventListener("securitypolicyviolation", (event) => window.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
  });
  // While the page is written: the files of this folder in place of those in the binary.
  if (process.env.DASHBOARD) {
    await page.route(/\/koboshi\/dashboard\.(js|css)$/, async (route) => {
      const answer = await route.fetch();
      await route.fulfill({ response: answer, body: readFileSync(`${process.env.DASHBOARD}/${new URL(route.request().url()).pathname.split("/").at(-1)}`) });
    });
  }
  await page.goto(address);
  return page;
}

/** Asks again until it holds. */
export async function until(page, condition, argument) {
  try {
    await page.waitForFunction(condition, argument, { timeout: 20_000, polling: 50 });
  } catch (error) {
    throw new Error(`never happened: ${condition}\n${await page.evaluate(() => document.body.innerText)}`, { cause: error });
  }
}

export const says = (page, text) => until(page, (wanted) => document.body.innerText.includes(wanted), text);
