/**
 * A bounded buffer between events that come and a consumer that takes its time: the iterator of a turn or of a session.
 *
 * `merge` joins an event with the one before it, so that text does not pile up piece by piece. Where a consumer does not read at all, the oldest
 * event that `mayDrop` names makes room: the bound holds for any input.
 */
import { MAX_EVENTS } from "./limits.js";

export class Queue<T> {
  readonly #events: T[] = [];
  #end: { readonly error?: unknown } | undefined;
  #wake = () => {};
  readonly #merge: (last: T, next: T) => T | null;
  readonly #mayDrop: (event: T) => boolean;

  constructor(merge: (last: T, next: T) => T | null, mayDrop: (event: T) => boolean) {
    this.#merge = merge;
    this.#mayDrop = mayDrop;
  }

  push(event: T): void {
    const events = this.#events;
    this.#add(event);
    if (events.length > MAX_EVENTS) {
      const [, ...rest] = events.splice(Math.max(events.findIndex(this.#mayDrop), 0));
      // The neighbours of what is dropped may now be one.
      for (const kept of rest) this.#add(kept);
    }
    this.#wake();
  }

  #add(event: T): void {
    const last = this.#events.pop();
    const merged = last && this.#merge(last, event);
    if (last && !merged) this.#events.push(last);
    this.#events.push(merged ?? event);
  }

  /** No more events follow. What is buffered is still read; then the iteration ends, or throws the error. */
  end(error?: unknown): void {
    this.#end ??= { error };
    this.#wake();
  }

  /** No more events are wanted, not even those that wait. */
  leave(): void {
    this.#events.length = 0;
    this.end();
  }

  /** The events as they come. `left` is called when the consumer has enough (`break`). */
  read(left: () => void): AsyncGenerator<T, void> {
    const reader = this.#read();
    const end = reader.return.bind(reader);
    // A reader that is asleep cannot leave, so it is woken.
    reader.return = () => {
      left();
      this.leave();
      return end();
    };
    return reader;
  }

  async *#read(): AsyncGenerator<T, void> {
    for (;;) {
      const event = this.#events.shift();
      if (event) yield event;
      else if (!this.#end) await new Promise<void>((wake) => (this.#wake = wake));
      else if (this.#end.error) throw this.#end.error;
      else return;
    }
  }
}
