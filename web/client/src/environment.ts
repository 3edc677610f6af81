/**
 * What a session needs of the world: sockets, time, chance, storage, and whether anyone looks at the page.
 *
 * Everything can be handed in, so that a test drives time and breaks sockets. Defaults come from the globals that a browser, a worker, Node,
 * Deno or Bun has; a missing one has a quiet stand-in, except `WebSocket`, without which there is no session.
 */

import { MAX_REMEMBERED } from "./limits.js";

/** The part of a WebSocket that is used. */
export interface Socket {
  send(text: string): void;
  close(code?: number, reason?: string): void;
  onopen: ((event: any) => void) | null;
  onmessage: ((event: any) => void) | null;
  onerror: ((event: any) => void) | null;
  onclose: ((event: any) => void) | null;
}

export type SocketClass = new (url: string, protocols?: string | string[]) => Socket;

/** The part of an AbortSignal that is used. */
export interface Signal {
  readonly aborted: boolean;
  readonly reason?: unknown;
  addEventListener(type: "abort", listener: () => void): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

export interface KeyValue {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
}

/** Whether anyone looks at the page, and whether the device has a network. */
export interface Visibility {
  readonly hidden: boolean;
  readonly online: boolean;
  /** Calls back when either may have changed, and when the page comes back from sleep. */
  subscribe(listener: () => void): () => void;
}

export interface Environment {
  readonly WebSocket: SocketClass | undefined;
  readonly fetch: ((url: string, init: { method: string }) => Promise<{ ok: boolean; status: number; json(): Promise<any> }>) | undefined;
  /** Milliseconds on a clock that may jump when the device sleeps. */
  readonly now: () => number;
  readonly random: () => number;
  /** Calls back once after so many milliseconds; what it returns calls it off. */
  readonly schedule: (callback: () => void, ms: number) => () => void;
  readonly storage: KeyValue | null;
  readonly visibility: Visibility;
}

export function environment(given: Partial<Environment>): Environment {
  const world = globalThis as any;
  let { storage } = given;
  try {
    if (storage === undefined) storage = world.sessionStorage as KeyValue;
  } catch {
    // Reading sessionStorage throws where a page may not store.
  }
  return {
    WebSocket: given.WebSocket ?? world.WebSocket,
    fetch: given.fetch ?? world.fetch,
    now: given.now ?? Date.now,
    random: given.random ?? Math.random,
    schedule:
      given.schedule ??
      ((callback, ms) => {
        const timer = world.setTimeout(callback, ms);
        return () => world.clearTimeout(timer);
      }),
    storage: storage ?? null,
    visibility: given.visibility ?? pageVisibility(world),
  };
}

function pageVisibility(world: any): Visibility {
  const page = world.document;
  return {
    get hidden() {
      return page?.visibilityState === "hidden";
    },
    get online() {
      return world.navigator?.onLine !== false;
    },
    subscribe(listener) {
      const places = [[page, "visibilitychange"], [world, "pageshow"], [world, "online"], [world, "offline"]];
      for (const [place, type] of places) place?.addEventListener?.(type, listener);
      return () => {
        for (const [place, type] of places) place?.removeEventListener?.(type, listener);
      };
    },
  };
}

/** Calls back when the signal aborts, at once if it has. */
export function whenAborted(signal: Signal | undefined, callback: () => void): void {
  if (signal?.aborted) callback();
  signal?.addEventListener("abort", callback);
}

/** Listeners by what they listen to. */
export type Listeners = Map<unknown, Set<(value: any) => void>>;

/** Adds a listener; what it returns takes it away again. */
export function listen(listeners: Listeners, key: unknown, listener: (value: any) => void): () => void {
  // Wrapped, so that one function may listen twice and leave once.
  const own = (value: any) => listener(value);
  const others = listeners.get(key) ?? new Set();
  listeners.set(key, others.add(own));
  return () => void others.delete(own);
}

/** Calls every listener. One that throws is reported to whoever watches the page's errors, and disturbs no other. */
export function tell(listeners: Iterable<(value: any) => void> | undefined, value: unknown): void {
  const world = globalThis as any;
  for (const listener of [...(listeners ?? [])]) {
    try {
      listener(value);
    } catch (exception) {
      (world.reportError ?? world.console.error)(exception);
    }
  }
}

/** Sets an entry of a map that forgets the oldest ones. */
export function remember<T>(map: Map<string, T>, key: string, value: T): T {
  map.set(key, value);
  for (const oldest of map.keys()) if (map.size > MAX_REMEMBERED) map.delete(oldest);
  return value;
}
