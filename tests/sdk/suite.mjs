// What every SDK of Node is promised: the same promises as suite.py, the same table, the same names.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

export const require = createRequire(process.env.KOBOSHI_NODE_MODULES + "/");
export const BASE = process.argv[2];
export const KEY = process.env.KOBOSHI_KEY;
// Seconds: no SDK with its default settings may be made to wait for longer, whatever the fault.
const LONGEST_CALL = 12;
const DIALECTS = process.env.KOBOSHI_UPSTREAMS.split(",");
const TABLE = JSON.parse(readFileSync(new URL("table.json", import.meta.url)));
export const ASK = [["user", "Say something about falling down and getting up."]];
const PARALLEL = [["user", "Book tables in parallel and tell me the time."]];
export const BOOK = {
  name: "book_table", description: "Books a table",
  schema: { type: "object", properties: { city: { type: "string" }, people: { type: "integer" } }, required: ["city", "people"], additionalProperties: false },
};
const NOW = { name: "what_time", description: "Says what time it is", schema: { type: "object", properties: {}, additionalProperties: false } };
// One red pixel.
export const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

const slug = (fall) => fall.replace(/[^a-z0-9]+/g, "-");
const alone = (dialect, fall, stream) => `${dialect}.only${stream ? "-streamed" : ""}.${slug(fall)}`;
const show = (what) => JSON.stringify(what)?.slice(0, 1500);
// Arguments as an agent reads them: none at all means none.
export const parsed = (given) => (given ? JSON.parse(given) : {});

async function attempts() {
  const { targets } = await (await fetch(`${BASE}/koboshi/targets`, { headers: { authorization: `Bearer ${process.env.KOBOSHI_ADMIN_KEY}` } })).json();
  return targets.reduce((sum, known) => sum + known.attempts, 0);
}

export function version(name) {
  return JSON.parse(readFileSync(`${process.env.KOBOSHI_NODE_MODULES}/node_modules/${name}/package.json`)).version;
}

export class Suite {
  checked = 0;
  wrongs = [];

  constructor(sdk) {
    this.sdk = sdk;
  }

  check(ok, what) {
    this.checked += 1;
    if (!ok) throw new Error(what);
  }

  // One case; the others go on if it does not hold.
  async case(what, run) {
    try {
      await run();
    } catch (error) {
      this.wrongs.push(`${what}: ${String(error?.message ?? error).slice(0, 1500)}`);
    }
  }

  async run() {
    for (const dialect of DIALECTS) {
      const model = `${dialect}.ok`;
      for (const name of ["text", "images", "structured", "tools", "thinking"]) {
        for (const stream of [false, true]) {
          await this.case(`${model} ${name}${stream ? " streamed" : ""}`, () => this[name](model, stream));
        }
      }
      await this.case(`${dialect} falling`, () => this.falling(dialect));
      await this.errors(dialect);
    }
    const model = `${DIALECTS[0]}.ok`;
    await this.case("counts", () => this.counts(model));
    await this.case("lists", () => this.lists(model));
    for (const more of this.sdk.more ?? []) await this.case(more.name, () => more(this, model));
    for (const wrong of this.wrongs) console.log(`${this.sdk.name}: WRONG: ${wrong}`);
    console.log(`${this.sdk.name}: ${this.checked} checks, ${this.wrongs.length} cases wrong, upstreams ${DIALECTS.join(", ")}`);
    process.exit(this.wrongs.length > 0 ? 1 : 0);
  }

  async text(model, stream) {
    const { sdk } = this;
    const whole = await sdk.ask(model, ASK);
    this.check(whole.text.length > 40, `too little to compare: ${show(whole)}`);
    const said = await sdk.ask(model, ASK, { stream });
    this.check(said.text === whole.text && said.finish === sdk.ends.stop && Math.min(...said.usage) > 0, `${show(said)}, not ${show(whole)}`);
    const short = await sdk.ask(model, ASK, { stream, most: 3 });
    this.check(short.finish === sdk.ends.length && whole.text.startsWith(short.text.trim()), `${show(short)} though three tokens were the limit`);
    const talk = [...ASK, ["answer", said], ["user", "And then?"]];
    this.check((await sdk.ask(model, talk, { system: "You are a doll that always gets up.", stream })).text.length > 40, "no second answer");
  }

  async images(model, stream) {
    const said = await this.sdk.ask(model, [["image", "What is on this picture?", PIXEL]], { stream });
    this.check(said.text.length > 20, `nothing said of a picture: ${show(said)}`);
  }

  async structured(model, stream) {
    const given = JSON.parse((await this.sdk.ask(model, ASK, { schema: BOOK.schema, stream })).text);
    this.check(Object.keys(given).sort().join() === "city,people" && Number.isInteger(given.people), `${show(given)} does not fit the schema`);
  }

  // A loop: several calls at once, one of them without arguments, their results, the words at the end.
  async tools(model, stream) {
    const { sdk } = this;
    const called = await sdk.ask(model, PARALLEL, { tools: [BOOK, NOW], stream });
    const by = Object.fromEntries(called.calls.map((call) => [call.name, call]));
    this.check(called.calls.length === 2 && by.book_table && by.what_time && called.finish === sdk.ends.tools, show(called));
    this.check(Number.isInteger(by.book_table.args.people) && show(by.what_time.args) === "{}", show(called));
    this.check(by.book_table.id !== by.what_time.id, `calls share an id: ${show(called)}`);
    const results = called.calls.map((call) => [call, `result-of-${call.name}`]);
    const said = await sdk.ask(model, [...PARALLEL, ["answer", called], ["results", results]], { tools: [BOOK, NOW], stream });
    this.check(said.finish === sdk.ends.stop && said.calls.length === 0 && said.text.includes("result-of-"), `after the results came ${show(said)}`);
    const forced = await sdk.ask(model, ASK, { tools: [BOOK, NOW], must: "what_time", stream });
    this.check(forced.calls.length === 1 && forced.calls[0].name === "what_time" && show(forced.calls[0].args) === "{}", show(forced));
  }

  // A model that thinks first: its thoughts are no words of the answer, and what falls behind them is caught all the same.
  async thinking(model, stream) {
    const { sdk } = this;
    const whole = (await sdk.ask(model, ASK)).text;
    let said = await sdk.ask(model, ASK, { think: true, stream });
    this.check(said.text === whole && said.finish === sdk.ends.stop, `${show(said)}, not ${whole}`);
    for (const fall of TABLE.falls.thinking) {
      said = await sdk.ask(model.replace(".ok", `.fall.${slug(fall)}`), ASK, { tools: [BOOK], think: true, stream });
      this.check(said.finish === sdk.ends.tools && said.calls.length === 1 && Number.isInteger(said.calls[0].args.people), `${fall}: ${show(said)}`);
    }
    const talk = [...ASK, ["answer", said], ["results", said.calls.map((call) => [call, "result-of-it"])]];
    said = await sdk.ask(model, talk, { tools: [BOOK], think: true, stream });
    this.check(said.text.includes("result-of-it"), `after the results came ${show(said)}`);
  }

  async falling(dialect) {
    const whole = (await this.sdk.ask(`${dialect}.ok`, ASK)).text;
    const jobs = [];
    const add = (fall, stream, name) => jobs.push([`${dialect}/${fall} ${name}${stream ? " streamed" : ""}`, () => this[name](`${dialect}.fall.${slug(fall)}`, whole, stream)]);
    for (const fall of TABLE.falls.whole) add(fall, false, "fallen");
    for (const fall of TABLE.falls.stream) add(fall, true, "fallen");
    for (const fall of TABLE.falls.tools) for (const stream of [false, true]) add(fall, stream, "mended");
    const work = async () => {
      for (let job = jobs.shift(); job; job = jobs.shift()) await this.case(...job);
    };
    await Promise.all(Array.from({ length: 8 }, work));
  }

  async fallen(model, whole, stream) {
    const said = await this.sdk.ask(model, ASK, { stream });
    this.check(said.text === whole && said.finish === this.sdk.ends.stop, `${show(said)}, not ${whole}`);
  }

  async mended(model, _, stream) {
    const said = await this.sdk.ask(model, ASK, { tools: [BOOK], stream });
    this.check(said.finish === this.sdk.ends.tools && said.calls.length === 1 && Number.isInteger(said.calls[0].args.people), show(said));
  }

  async errors(dialect) {
    for (const stream of [false, true]) {
      const streamed = stream ? " streamed" : "";
      for (const fall of TABLE.filtered) {
        await this.case(`${dialect}/${fall}${streamed}`, () => this.filtered(alone(dialect, fall, stream), stream));
      }
      const faults = { ...Object.fromEntries(TABLE.errors.map((fall) => [fall, fall])), ...TABLE.alike, ...(dialect === DIALECTS[0] && TABLE.waits) };
      // A stream that breaks in the middle is no error before the answer: `broken` has it.
      if (stream) TABLE.only_whole.forEach((fall) => delete faults[fall]);
      // Google has no error for a prompt that it blocks: a good answer says it.
      if (dialect === "gemini") delete faults["filter-400"];
      const cases = Object.entries(faults).map(([fall, like]) => [fall, like, alone(dialect, fall, stream), {}]);
      cases.push(
        ["no model", "no model", "no-such-model-at-all", {}], ["no key", "no key", `${dialect}.ok`, { key: "another-key" }],
        ["bad request", "bad request", `${dialect}.ok`, { broken: true }],
        ["no images", "bad request", `${dialect}.blind`, { turns: [["image", "What is on this picture?", PIXEL]] }],
      );
      for (const [what, like, model, more] of cases) {
        // The second time the gateway may know the fault and ask no target, and later its breaker is open: the SDK must not notice.
        const times = TABLE.often.includes(what) && dialect === DIALECTS[0] ? 6 : 2;
        for (let nth = 1; nth <= times; nth += 1) {
          await this.case(`${dialect}/${what} error${streamed}, request ${nth}`, () => this.wrong(like, model, { stream, ...more }));
        }
      }
    }
    for (const fall of TABLE.broken) await this.case(`${dialect}/${fall} error in the stream`, () => this.broken(alone(dialect, fall, true)));
  }

  // That a content filter ended an answer is a finish reason behind the text, and no exception.
  async filtered(model, stream) {
    const said = await this.sdk.ask(model, ASK, { stream });
    this.check(said.finish === this.sdk.ends.filter && said.text.length > 0, show(said));
  }

  async wrong(what, model, { turns = ASK, ...more }) {
    const before = await attempts();
    const began = performance.now();
    const error = await this.raised(() => this.sdk.ask(model, turns, more));
    const wanted = this.sdk.errors[what];
    this.check(this.sdk.named(error) === wanted, `${this.sdk.named(error)}, not ${wanted}: ${error}`);
    this.check(show(this.sdk.told(error))?.includes("KBS-"), show(this.sdk.told(error)));
    const took = (performance.now() - began) / 1000;
    this.check(took < LONGEST_CALL, `the call took ${took.toFixed(1)} s`);
    this.check((await attempts()) - before <= 3, "the SDK retried on top of us");
  }

  async broken(model) {
    const began = [];
    const error = await this.raised(() => this.sdk.ask(model, ASK, { stream: true, began }));
    this.check(began.length > 0, `no word of it came before ${error}`);
    this.check(this.sdk.inStream.includes(this.sdk.named(error)), `${this.sdk.named(error)}: ${error}`);
    this.check(show(this.sdk.told(error))?.includes("KBS-"), show(this.sdk.told(error)));
  }

  async raised(run) {
    let said;
    try {
      said = await run();
    } catch (error) {
      if (error instanceof this.sdk.base) return error;
      throw new Error(`${error?.constructor?.name}, no error of the SDK: ${error}`);
    }
    throw new Error(`no error: ${show(said)}`);
  }

  async counts(model) {
    if (!this.sdk.count) return;
    const short = await this.sdk.count(model, ASK);
    const long = await this.sdk.count(model, [["user", "to fall and to get up again ".repeat(50)]]);
    this.check(0 < short && short < long, `${short} and ${long} tokens were counted`);
  }

  async lists(model) {
    if (!this.sdk.models) return;
    this.check((await this.sdk.model(model)) === model, `${model} cannot be looked up`);
    this.check((await this.sdk.models()).includes(model), `${model} is not listed`);
  }
}
