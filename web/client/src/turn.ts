/**
 * One turn as its sender sees it: an iterable of what happens, and a promise of the result.
 *
 * A turn reads the transcript, not the wire: it compares the text it has told with the text that is there, so that replay, snapshot and rewind
 * all come out right. Leaving the iteration leaves the turn running; `cancel()` stops it.
 */
import { type Signal, whenAborted } from "./environment.js";
import type { KoboshiError } from "./error.js";
import type { Call, Reason } from "./frames.js";
import type { FaultKind } from "./kinds.js";
import { Queue } from "./queue.js";

export interface TurnResult {
  readonly id: string;
  readonly turn: number;
  readonly text: string;
  readonly reason: Reason;
  /** The id of the answer. */
  readonly message: string;
  readonly degraded?: string | undefined;
  readonly usage?: Readonly<Record<string, unknown>> | undefined;
}

export type TurnEvent =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "reasoning"; readonly text: string }
  /** The answer starts over at `to`; `removed` is what was cut, so that a page can fade it. */
  | { readonly type: "rewind"; readonly to: number; readonly removed: string; readonly reason: string }
  | { readonly type: "tool"; readonly call: Call }
  | { readonly type: "retry"; readonly message: string; readonly attempt: number; readonly maxAttempts: number; readonly delayMs: number; readonly kind: FaultKind; readonly where: string }
  | { readonly type: "degraded"; readonly source: string; readonly message?: string | undefined }
  | { readonly type: "trimmed"; readonly messages: number }
  | { readonly type: "done"; readonly result: TurnResult };

export interface Turn extends AsyncIterable<TurnEvent>, PromiseLike<TurnResult> {
  readonly id: string;
  /** Its number, once the server has accepted it. */
  readonly turn: number | undefined;
  readonly text: string;
  /** The server has it: the person's input is safe. */
  readonly accepted: boolean;
  /** Stops the turn. What was written so far is kept. */
  cancel(): void;
}

/** The turn as the transcript has it. */
export interface TurnView {
  readonly text: string;
  readonly result?: TurnResult | undefined;
  readonly failure?: KoboshiError | undefined;
}

function merge(last: TurnEvent, next: TurnEvent): TurnEvent | null {
  if ((last.type === "text" || last.type === "reasoning") && next.type === last.type) return { ...next, text: last.text + next.text };
  return last.type === next.type && next.type === "retry" ? next : null;
}

const mayDrop = (event: TurnEvent) => !["text", "rewind", "done"].includes(event.type);

export class RunningTurn implements Turn {
  readonly id: string;
  turn: number | undefined;
  text = "";
  isSettled = false;
  /** A retry is about a later attempt than this one. */
  readonly afterAttempt: number;
  readonly #queues = new Set<Queue<TurnEvent>>();
  readonly #cancel: (turn: RunningTurn) => void;
  readonly #signal: Signal | undefined;
  /** Settled once: by the turn, or by those who wait for it and leave. */
  readonly #promise: Promise<TurnResult>;
  #resolve!: (result: TurnResult) => void;
  #reject!: (error: unknown) => void;

  constructor(id: string, cancel: (turn: RunningTurn) => void, signal?: Signal, afterAttempt = 0) {
    this.id = id;
    this.#cancel = cancel;
    this.#signal = signal;
    this.afterAttempt = afterAttempt;
    this.#promise = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    // An error that is shown elsewhere is no unhandled rejection; whoever awaits the turn gets it all the same.
    this.#promise.catch(() => {});
    whenAborted(signal, () => this.#reject(signal?.reason));
  }

  get accepted(): boolean {
    return this.turn !== undefined;
  }

  cancel(): void {
    if (!this.isSettled) this.#cancel(this);
  }

  /** Tells what changed since the last look. */
  sync({ text, result, failure }: TurnView, reason = "resumed"): void {
    if (this.isSettled) return;
    let same = 0;
    if (text.startsWith(this.text)) same = this.text.length;
    else while (same < text.length && text[same] === this.text[same]) same++;
    if (same < this.text.length) this.tell({ type: "rewind", to: same, removed: this.text.slice(same), reason });
    this.text = text;
    if (text.length > same) this.tell({ type: "text", text: text.slice(same) });
    if (failure) this.fail(failure);
    else if (result) {
      this.isSettled = true;
      this.#resolve(result);
    }
  }

  tell(event: TurnEvent): void {
    for (const queue of this.#queues) queue.push(event);
  }

  fail(error: unknown): this {
    this.isSettled = true;
    this.#reject(error);
    return this;
  }

  [Symbol.asyncIterator](): AsyncIterableIterator<TurnEvent, void> {
    const queue = new Queue(merge, mayDrop);
    this.#queues.add(queue);
    if (this.text) queue.push({ type: "text", text: this.text });
    this.then(
      (result) => {
        queue.push({ type: "done", result });
        queue.end();
      },
      (error) => (this.#signal?.aborted ? queue.leave() : queue.end(error)),
    );
    return queue.read(() => this.#queues.delete(queue));
  }

  then<A = TurnResult, B = never>(good?: ((result: TurnResult) => A | PromiseLike<A>) | null, bad?: ((error: unknown) => B | PromiseLike<B>) | null): Promise<A | B> {
    return this.#promise.then(good, bad);
  }
}
