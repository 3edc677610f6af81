/**
 * What the page knows: polled once in two seconds, and the journal as it happens. Nothing is asked while the page is hidden, and a server that
 * is away is asked again until it is back; what happened meanwhile is then read from its journal.
 */
import { useEffect, useState } from "preact/hooks";
import { ApiError, get, visitor } from "./api";
import type { Agent, Entry, Gateway, Overview, StatusRow, Supervisor, Target, Visitor } from "./api";

const POLL_MS = 2_000;
const RETRY_MS = 1_000;
/** How late entries of other processes may be in the store. */
const LATE_MS = 60_000;
/** Rows that are kept. */
export const MAX_ENTRIES = 10_000;
/** Samples of the chart: five minutes. */
const MAX_SAMPLES = 150;

export interface Sample {
  at: number;
  requests: number;
  faults: number;
}

export type Link = "connecting" | "live" | "away";

class Live {
  visitor: Visitor | null = null;
  overview: Overview | null = null;
  targets: Target[] = [];
  gateways: Gateway[] = [];
  supervisors: Supervisor[] = [];
  rows: StatusRow[] = [];
  agents: { supervisor: boolean; agents: Agent[] } | null = null;
  /** Newest first. */
  entries: Entry[] = [];
  hasJournal = false;
  samples: Sample[] = [];
  link: Link = "connecting";
  /** The server's clock, less ours. */
  skew = 0;
  private watchers = new Set<() => void>();
  private feed: EventSource | null = null;
  private timer = 0;
  private waiting: Entry[] = [];
  private frame = 0;
  private lastTotals: { at: number; requests: number; faults: number; started: string } | null = null;
  private polls = 0;

  watch(listener: () => void) {
    this.watchers.add(listener);
    return () => void this.watchers.delete(listener);
  }

  tell() {
    for (const watcher of this.watchers) watcher();
  }

  now() {
    return Date.now() + this.skew;
  }

  start() {
    document.addEventListener("visibilitychange", () => (document.visibilityState === "hidden" ? this.rest() : this.poll()));
    addEventListener("online", () => void this.poll());
    void this.poll();
  }

  private rest() {
    clearTimeout(this.timer);
    this.feed?.close();
    this.feed = null;
  }

  /** Asks now, and again after a while. */
  async poll(): Promise<void> {
    clearTimeout(this.timer);
    const mine = ++this.polls;
    let pause = POLL_MS;
    try {
      if (!this.visitor?.signed_in || this.link !== "live") this.visitor = await visitor();
      if (this.visitor.signed_in) {
        const [overview, { targets }] = await Promise.all([get<Overview>("overview"), get<{ targets: Target[] }>("targets")]);
        if (mine !== this.polls) return;
        this.take(overview, targets);
        if (this.feed === null || this.feed.readyState === EventSource.CLOSED) this.listen();
      } else {
        this.forget();
      }
      this.link = "live";
    } catch (error) {
      if (mine !== this.polls) return;
      if (error instanceof ApiError && error.status === 401) {
        this.visitor = await visitor().catch(() => null);
      } else {
        this.link = "away";
        pause = RETRY_MS;
      }
      this.feed?.close();
      this.feed = null;
    }
    this.tell();
    if (document.visibilityState !== "hidden") this.timer = window.setTimeout(() => void this.poll(), pause);
  }

  /** Who has signed out leaves nothing behind. */
  private forget() {
    this.feed?.close();
    this.feed = null;
    this.entries = [];
    this.hasJournal = false;
    this.agents = null;
    this.overview = null;
  }

  private take(overview: Overview, targets: Target[]) {
    this.overview = overview;
    this.targets = targets;
    const at = Date.parse(overview.now);
    this.skew = at - Date.now();
    const { counts } = overview;
    const requests = counts.whole + counts.cached + counts.degraded + counts.refused + counts.failed + counts.broken;
    const before = this.lastTotals;
    if (before && before.started === overview.started && at > before.at) {
      const seconds = (at - before.at) / 1000;
      this.samples.push({ at: at / 1000, requests: Math.max(0, requests - before.requests) / seconds, faults: Math.max(0, counts.faults - before.faults) / seconds });
      if (this.samples.length > MAX_SAMPLES) this.samples.shift();
      this.samples = [...this.samples];
    }
    this.lastTotals = { at, requests, faults: counts.faults, started: overview.started };
  }

  /** Opens the feed, then reads what happened before it. */
  private listen() {
    const feed = new EventSource("feed");
    this.feed = feed;
    feed.addEventListener("open", () => void this.readJournal());
    feed.addEventListener("lost", () => void this.readJournal());
    feed.addEventListener("entry", (event) => {
      this.waiting.push(JSON.parse((event as MessageEvent<string>).data) as Entry);
      // A burst is shown once a frame.
      if (this.frame === 0) this.frame = requestAnimationFrame(() => this.settle());
    });
    feed.addEventListener("error", () => {
      // The poll finds out whether the server is away, and opens another one.
      feed.close();
      if (this.feed === feed) this.feed = null;
      clearTimeout(this.timer);
      this.timer = window.setTimeout(() => void this.poll(), RETRY_MS);
    });
  }

  private settle() {
    this.frame = 0;
    const fresh = this.waiting.reverse();
    this.waiting = [];
    this.entries = [...fresh, ...this.entries].slice(0, MAX_ENTRIES);
    this.tell();
  }

  /** The first time the whole journal, then what is newer than a minute before the newest: entries of other processes may come late. */
  private async readJournal() {
    const newest = this.hasJournal ? this.entries[0] : undefined;
    const since = newest ? `&since=${new Date(Date.parse(newest.at) - LATE_MS).toISOString()}` : "";
    const read = await get<{ entries: Entry[] }>(`journal?limit=${MAX_ENTRIES}${since}`).catch(() => null);
    if (read === null) return;
    const known = new Set(this.entries.map(same));
    const fresh = read.entries.filter((entry) => !known.has(same(entry)));
    const isFirst = !this.hasJournal;
    this.hasJournal = true;
    if (fresh.length > 0) this.entries = [...this.entries, ...fresh.reverse()].sort((a, b) => (a.at < b.at ? 1 : a.at > b.at ? -1 : 0)).slice(0, MAX_ENTRIES);
    if (fresh.length > 0 || isFirst) this.tell();
  }

  /** What other processes wrote: the feed is this gateway's own. */
  refreshJournal() {
    return this.readJournal();
  }

  async readAgents() {
    // Only `koboshi up` keeps agents: elsewhere there is nothing to order, and the journal shows what ran.
    try {
      const { keeps_agents } = this.overview ?? (await get<Overview>("overview"));
      const agents = keeps_agents ? (await get<{ agents: Agent[] }>("agents")).agents : [];
      this.agents = { supervisor: keeps_agents, agents };
    } catch {
      // What was known stays until the server is back.
    }
    this.tell();
  }

  async readStatus() {
    const status = await get<{ gateways: Gateway[]; supervisors: Supervisor[]; rows: StatusRow[] }>("status").catch(() => null);
    if (status) {
      this.gateways = status.gateways;
      this.supervisors = status.supervisors;
      this.rows = status.rows;
    }
    this.tell();
  }
}

/** What tells entries apart. */
export const same = (entry: Entry) => `${entry.at} ${entry.node} ${entry.text}`;

export const live = new Live();

/** A process that reports to the store. */
export interface Node {
  at: string;
  stopped: boolean;
  config?: string | null;
}

/** Whether it runs, according to its reports. */
export const isRunning = (node: Node, now: number) => !node.stopped && now - Date.parse(node.at) < 30_000;

/** Draws again whenever something came. */
export function useLive(): Live {
  const [, draw] = useState(0);
  useEffect(() => live.watch(() => draw((n) => n + 1)), []);
  return live;
}

/** The time, once a second: for countdowns. */
export function useNow(): number {
  const [now, set] = useState(live.now());
  useEffect(() => {
    const timer = setInterval(() => set(live.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  return now;
}

/** Calls it now and every so often while the page is looked at. */
export function useEvery(ms: number, call: () => void) {
  useEffect(() => {
    call();
    const timer = setInterval(() => document.visibilityState !== "hidden" && call(), ms);
    return () => clearInterval(timer);
  }, []);
}
