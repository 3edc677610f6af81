/**
 * Virtual time: a clock that stands still until a test moves it. Hand `now` and `schedule` to a session and to a fake server.
 *
 * Promises are not part of it: `advance` lets those that are ready run between two timers.
 */
export interface VirtualClock {
  readonly now: () => number;
  readonly schedule: (callback: () => void, ms: number) => () => void;
  /** Moves the clock, and runs what is due on the way, in order. */
  advance(ms: number): Promise<void>;
  /** Moves the clock from one timer to the next until the condition holds; false if that takes longer than `ms`. */
  until(condition: () => boolean, ms?: number): Promise<boolean>;
  /** The clock shows another time, as after sleep or when a person sets it; no timer runs for it. */
  jump(ms: number): void;
  /** How many timers wait. */
  readonly waiting: number;
}

interface Timer {
  readonly at: number;
  readonly callback: () => void;
}

export function virtualClock(start = 1_000_000): VirtualClock {
  let time = start;
  let offset = 0;
  const timers = new Set<Timer>();
  const settle = async () => {
    for (let n = 0; n < 8; n++) await Promise.resolve();
  };
  const runNext = async (limit: number): Promise<boolean> => {
    await settle();
    let next: Timer | undefined;
    for (const timer of timers) if (!next || timer.at < next.at) next = timer;
    if (!next || next.at > limit) return false;
    timers.delete(next);
    time = Math.max(time, next.at);
    next.callback();
    return true;
  };
  return {
    now: () => time + offset,
    schedule(callback, ms) {
      const timer = { at: time + Math.max(0, ms), callback };
      timers.add(timer);
      return () => void timers.delete(timer);
    },
    async advance(ms) {
      const limit = time + ms;
      while (await runNext(limit));
      time = limit;
    },
    async until(condition, ms = 120_000) {
      const limit = time + ms;
      await settle();
      while (!condition()) if (!(await runNext(limit))) return condition();
      return true;
    },
    jump(ms) {
      offset += ms;
    },
    get waiting() {
      return timers.size;
    },
  };
}
