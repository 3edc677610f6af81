/**
 * Tools that run on the page: offered by the server, claimed by one tab, run once, answered.
 *
 * It looks at the calls of the transcript and does what is due, so a reconnect needs no special case. A result is sent on every connection until
 * the server says that it has it. A call that ran before, on this page or before its reload, is answered from memory or as `unknown`, never run again,
 * unless the tool is idempotent or a person confirms.
 */
import { remember } from "./environment.js";
import type { Call, ClientFrame, ToolDeclaration } from "./frames.js";
import { MAX_REMEMBERED } from "./limits.js";

export type ToolHandler = (args: any, call: Call) => unknown;

export interface ToolOptions {
  /** The tool may run a second time without harm. */
  readonly idempotent?: boolean;
  readonly description?: string;
  /** JSON Schema of the arguments. */
  readonly parameters?: unknown;
}

/** A call that this page has to do with. */
interface Run {
  /** The connection on which the last thing was said of it. */
  sentOn?: number;
  isBegun?: boolean;
  result?: Extract<ClientFrame, { type: "tool_result" }>;
}

export class Tools {
  readonly #tools = new Map<string, { handler: ToolHandler; options: ToolOptions }>();
  readonly #runs = new Map<string, Run>();
  /** Calls that were begun before a reload. */
  readonly #begun: Set<string>;
  readonly #confirm: ((call: Call) => boolean | Promise<boolean>) | undefined;
  readonly #changed: () => void;

  constructor(begun: readonly string[], confirm: ((call: Call) => boolean | Promise<boolean>) | undefined, changed: () => void) {
    this.#begun = new Set(begun);
    this.#confirm = confirm;
    this.#changed = changed;
  }

  add(name: string, handler: ToolHandler, options: ToolOptions): () => void {
    const tool = { handler, options };
    this.#tools.set(name, tool);
    this.#changed();
    return () => {
      if (this.#tools.get(name) === tool) this.#tools.delete(name);
    };
  }

  get declarations(): ToolDeclaration[] {
    return [...this.#tools].map(([name, { options }]) => ({ name, ...options }));
  }

  /** The calls that must not run again, for the storage. */
  get begun(): string[] {
    return [...this.#begun].slice(-MAX_REMEMBERED);
  }

  /** Does what is due on this connection. */
  tend(calls: readonly Call[], client: string, connection: number, send: (frame: ClientFrame) => void): void {
    for (const call of calls) {
      const tool = this.#tools.get(call.name);
      if (!tool || call.runs !== "client") continue;
      const run = this.#runs.get(call.call) ?? remember(this.#runs, call.call, {});
      let frame: ClientFrame | undefined;
      if (call.state === "offered") frame = { type: "tool_claim", call: call.call };
      else if (call.state === "claimed" && call.by === client) {
        frame = run.result;
        if (!run.isBegun) void this.#run(call, run, tool);
      }
      if (frame && run.sentOn !== connection) {
        run.sentOn = connection;
        send(frame);
      }
    }
  }

  async #run(call: Call, run: Run, { handler, options }: { handler: ToolHandler; options: ToolOptions }): Promise<void> {
    run.isBegun = true;
    const ranBefore = this.#begun.has(call.call);
    this.#begun.add(call.call);
    this.#changed();
    let [status, content]: ["ok" | "error" | "unknown", unknown] = ["unknown", undefined];
    try {
      if (!ranBefore || options.idempotent || (call.at_most_once === false && (await this.#confirm?.(call)))) {
        [status, content] = ["ok", (await handler(call.arguments, call)) ?? null];
      }
    } catch (error) {
      [status, content] = ["error", String((error as any)?.message ?? error)];
    }
    run.result = { type: "tool_result", call: call.call, status, content };
    delete run.sentOn;
    this.#changed();
  }
}
