/** What most tests start from: virtual time, a fake server, and pages that can be closed, reloaded, hidden and taken offline. */
import { createSession, type KeyValue, type Session, type SessionOptions, type Socket, type SocketClass } from "../src/index.js";
import { FakeServer, type FakeServerOptions, virtualClock } from "../src/testing/index.js";

/** Chance that is the same in every run. */
export function seeded(seed = 1): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export function memory(): KeyValue & { readonly entries: Map<string, string> } {
  const entries = new Map<string, string>();
  return {
    entries,
    getItem: (key) => entries.get(key) ?? null,
    setItem: (key, value) => void entries.set(key, value),
    removeItem: (key) => void entries.delete(key),
  };
}

export function page() {
  const listeners = new Set<() => void>();
  const state = { hidden: false, online: true };
  return {
    get hidden() {
      return state.hidden;
    },
    get online() {
      return state.online;
    },
    subscribe(listener: () => void) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    set(change: Partial<typeof state>) {
      Object.assign(state, change);
      for (const listener of [...listeners]) listener();
    },
    get listeners() {
      return listeners.size;
    },
  };
}

export function world(options: FakeServerOptions = {}, seed = 1) {
  const clock = virtualClock();
  const random = seeded(seed);
  const server = new FakeServer({ schedule: clock.schedule, random, ...options });
  const open = (given: Partial<SessionOptions> = {}): Session =>
    createSession({ url: "wss://app.example/v1/session", WebSocket: server.WebSocket, now: clock.now, schedule: clock.schedule, random, storage: memory(), visibility: page(), lang: "en", ...given });
  return { clock, server, open, random };
}

/** The transcript of a session as its state shows it. */
export const shown = ({ state }: Session) => ({ messages: state.messages, open: state.turn && { turn: state.turn.turn, text: state.turn.text } });
export const held = ({ transcript }: FakeServer) => ({ messages: transcript.messages, open: transcript.open && { turn: transcript.open.turn, text: transcript.open.text } });

/** Sockets that hand each text of the server through `change`; what it makes null never arrives. */
export function tampered(Inner: SocketClass, change: (text: string) => string | null): SocketClass {
  return class implements Socket {
    onopen: ((event: any) => void) | null = null;
    onmessage: ((event: any) => void) | null = null;
    onerror: ((event: any) => void) | null = null;
    onclose: ((event: any) => void) | null = null;
    readonly #inner: Socket;
    constructor(url: string) {
      this.#inner = new Inner(url);
      this.#inner.onopen = (event) => this.onopen?.(event);
      this.#inner.onclose = (event) => this.onclose?.(event);
      this.#inner.onmessage = ({ data }) => {
        const text = change(data);
        if (text !== null) this.onmessage?.({ data: text });
      };
    }
    send(text: string) {
      this.#inner.send(text);
    }
    close(code?: number) {
      this.#inner.close(code);
    }
  };
}
