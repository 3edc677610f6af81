/**
 * A session server in memory, for tests of pages: it answers from a script and breaks where the script says so.
 *
 * It keeps a log with epoch and numbers, resumes by replay or snapshot, accepts an id once, offers client tools once, and rewinds. It is the protocol and nothing
 * else: no route, no limits, no tickets unless `ticket` is given. Its own transcript is made by the client's reducer, so that a test can compare the two.
 */
import type { Call, ClientFrame, Content, Reason } from "../frames.js";
import type { SocketClass } from "../environment.js";
import { EMPTY, type RawFrame, reduce, type Transcript } from "../transcript.js";
import { socketClass } from "./socket.js";

/** A piece of an answer: text, a call of a client tool, or an error that ends the turn. */
export type Piece =
  | string
  | { readonly tool: string; readonly arguments?: unknown; readonly idempotent?: boolean }
  | { readonly error: Readonly<Record<string, unknown>> }
  | { readonly retry: number; readonly kind?: string }
  | { readonly degraded: string };

/** What breaks, and when: counted in frames that a reader got, or in pieces of the first attempt. */
export type Fault =
  | { readonly type: "cut"; readonly atFrame: number; readonly code?: number }
  | { readonly type: "killOwner"; readonly atPiece: number; readonly loseWrites?: number }
  | { readonly type: "rewind"; readonly atPiece: number; readonly reason?: string };

/** The connections break after this many frames of the log were sent. */
export const cutAt = (atFrame: number, code?: number): Fault => ({ type: "cut", atFrame, ...(code !== undefined && { code }) });
/** The server dies before this piece of the answer; another one takes the session over. */
export const killOwnerAt = (atPiece: number, loseWrites = 0): Fault => ({ type: "killOwner", atPiece, loseWrites });
/** The provider dies before this piece of the answer, and another one starts it over. */
export const rewindAt = (atPiece: number, reason = "connection_closed"): Fault => ({ type: "rewind", atPiece, reason });

export interface FakeServerOptions {
  /** The pieces of an answer. */
  readonly answer?: (content: Content, turn: { readonly turn: number; readonly attempt: number }) => readonly Piece[];
  readonly faults?: readonly Fault[];
  readonly schedule?: (callback: () => void, ms: number) => () => void;
  readonly random?: () => number;
  /** The pause between two pieces. */
  readonly pieceMs?: number;
  /** So many frames can be replayed; older cursors get a snapshot. */
  readonly ring?: number;
  /** So many messages are on a page of a snapshot. */
  readonly pageSize?: number;
  /** What a new connection must bring, if anything. */
  readonly ticket?: string;
  readonly heartbeatMs?: number;
  readonly reconnectMs?: number;
}

/** One connection, as the server holds it. */
export interface Peer {
  send(text: string): void;
  close(code: number): void;
}

interface Reader {
  readonly peer: Peer;
  client: string;
  isAttached: boolean;
}

const CLAIM_GRACE_MS = 30_000;
const DURABLE = new Set(["accepted", "tool_call", "tool_state", "rewind", "done"]);

export class FakeServer {
  /** Hand it to `createSession`. */
  readonly WebSocket: SocketClass;
  transcript: Transcript = EMPTY;
  /** How often a turn was begun at the provider. */
  upstreamCalls = 0;
  /** Every frame of a client, as it came. */
  readonly received: ClientFrame[] = [];
  readonly session = "s_fake";
  connections = 0;
  #resume = "";
  #log: RawFrame[] = [];
  /** The transcript after each write that must survive. */
  #stored: Transcript[] = [];
  readonly #readers = new Set<Reader>();
  readonly #options: Required<Omit<FakeServerOptions, "ticket">> & Pick<FakeServerOptions, "ticket">;
  #faults: Fault[];
  #framesSent = 0;
  #pieces: Piece[] = [];
  #done = 0;
  #stop: (() => void) | null = null;
  #counter = 0;
  /** Orders that were carried out: the same id is never carried out again. */
  readonly #orders = new Set<string>();
  isDown = false;

  constructor(options: FakeServerOptions = {}) {
    this.#options = {
      answer: (content) => [...`echo: ${typeof content === "string" ? content : JSON.stringify(content)}`],
      faults: [],
      schedule: (callback, ms) => {
        const timer = (globalThis as any).setTimeout(callback, ms);
        return () => (globalThis as any).clearTimeout(timer);
      },
      random: Math.random,
      pieceMs: 10,
      ring: 2_000,
      pageSize: 100,
      heartbeatMs: 20_000,
      reconnectMs: 1_000,
      ...options,
    };
    this.#faults = [...this.#options.faults];
    this.WebSocket = socketClass(this, this.#options.schedule);
    this.transcript = { ...EMPTY, epoch: this.#newEpoch() };
    this.#stored = [this.transcript];
  }

  // ---- faults by hand

  /** Breaks every connection; what is on its way is lost unless the code is a clean one. */
  cut(code = 1006): void {
    for (const { peer } of [...this.#readers]) peer.close(code);
    this.#readers.clear();
  }

  /** The server dies with what it had not stored, and another one takes over. Lost writes are gone as if a store had dropped them. */
  killOwner({ loseWrites = 0 }: { readonly loseWrites?: number } = {}): void {
    this.cut();
    this.#stop?.();
    const kept = this.#stored[Math.max(0, this.#stored.length - 1 - loseWrites)] ?? EMPTY;
    this.transcript = { ...kept, epoch: this.#newEpoch() };
    this.#stored = [this.transcript];
    this.#log = [];
    if (this.transcript.open) this.rewind("recover");
  }

  /** The answer starts over at the last tool call. */
  rewind(reason = "connection_closed"): void {
    const { open } = this.transcript;
    if (!open) return;
    const to = Math.max(0, ...open.calls.map(({ at }) => at));
    this.#append({ type: "rewind", turn: open.turn, attempt: open.attempt + 1, to, reason });
    this.#begin(open.calls.length);
  }

  goaway(in_ms = 1_000): void {
    for (const { peer } of this.#readers) this.#say(peer, { type: "goaway", in_ms, reason: "restart", reconnect_ms: in_ms });
  }

  /** The server is gone, or back. */
  down(isDown = true): void {
    this.isDown = isDown;
    if (isDown) this.cut();
  }

  // ---- connections

  /** A connection: what the client sends goes to `receive`; `closed` when it is gone. */
  connect(peer: Peer): { receive(text: string): void; closed(): void } {
    this.connections++;
    const reader: Reader = { peer, client: "", isAttached: false };
    return {
      receive: (text) => {
        const frame = JSON.parse(text) as ClientFrame;
        this.received.push(frame);
        if (frame.type === "hello") this.#attach(reader, frame);
        else if (this.#readers.has(reader)) this.#take(reader, frame);
      },
      closed: () => {
        this.#readers.delete(reader);
        this.#options.schedule(() => this.#giveUpCalls(reader.client), CLAIM_GRACE_MS);
      },
    };
  }

  /** A page that claimed a call and is gone may have run it: the model gets `unknown`, and the call never runs again. */
  #giveUpCalls(client: string): void {
    if ([...this.#readers].some((reader) => reader.client === client)) return;
    for (const call of this.transcript.open?.calls ?? []) {
      if (call.state === "claimed" && call.by === client) this.#finishCall(call, { type: "tool_result", call: call.call, status: "unknown" });
    }
  }

  #say(peer: Peer, frame: object): void {
    peer.send(JSON.stringify(frame));
  }

  #attach(reader: Reader, hello: Extract<ClientFrame, { type: "hello" }>): void {
    const { peer } = reader;
    const { epoch, seq, open } = this.transcript;
    const refuse = (kind: string, code: number, close: number) => {
      this.#say(peer, { type: "error", code, kind, kbs: "", message: kind, recoverable: false, scope: "connection", retry: { later: false } });
      peer.close(close);
    };
    const isResume = hello.resume !== undefined && hello.resume === this.#resume;
    if (hello.session !== undefined && hello.session !== this.session) return refuse("conversation_not_found", 3001, 4404);
    if (this.#options.ticket !== undefined && !isResume && hello.ticket !== this.#options.ticket) return refuse("token_expired", 2002, 4401);
    for (const other of this.#readers) {
      if (other.client !== hello.client) continue;
      this.#readers.delete(other);
      other.peer.close(4409);
    }
    reader.client = hello.client;
    this.#resume ||= `r_${this.#newEpoch()}`;
    const first = this.#log[0]?.seq ?? seq + 1;
    const canReplay = hello.epoch === epoch && hello.after !== undefined && hello.after >= first - 1 && hello.after <= seq && seq - hello.after <= this.#options.ring;
    const resumed = canReplay ? "replay" : hello.session === undefined && seq === 0 ? "new" : "snapshot";
    this.#say(peer, {
      type: "session", session: this.session, resume: this.#resume, epoch, seq, resumed,
      state: open ? "running" : "idle", heartbeat_ms: this.#options.heartbeatMs, reconnect_ms: this.#options.reconnectMs,
    });
    this.#readers.add(reader);
    reader.isAttached = true;
    if (canReplay) for (const frame of merged(this.#log.filter((held) => held.seq > (hello.after ?? 0)))) this.#deliver(reader, frame);
    else if (resumed === "snapshot") this.#snapshot(peer);
  }

  #snapshot(peer: Peer): void {
    const { epoch, seq: upto, messages, open } = this.transcript;
    const ids = messages.filter(({ role }) => role === "user").map(({ id }) => id);
    for (let at = 0; ; at += this.#options.pageSize) {
      const page = messages.slice(at, at + this.#options.pageSize);
      const more = at + this.#options.pageSize < messages.length;
      const after = messages[at - 1]?.id;
      this.#say(peer, { type: "snapshot", epoch, upto, ...(after !== undefined && { after }), messages: page, ...(more ? { more } : { ids, open }) });
      if (!more) return;
    }
  }

  #deliver(reader: Reader, frame: RawFrame): void {
    if (!this.#readers.has(reader)) return;
    this.#say(reader.peer, frame);
    this.#framesSent++;
    for (const fault of this.#faults) {
      if (fault.type !== "cut" || fault.atFrame !== this.#framesSent) continue;
      this.#faults = this.#faults.filter((other) => other !== fault);
      // The frame itself still arrives.
      this.#options.schedule(() => this.cut(fault.code), 1);
    }
  }

  // ---- the log

  #append(body: RawFrame): void {
    const frame = { ...body, seq: this.transcript.seq + 1 };
    const [next] = reduce(this.transcript, frame);
    this.transcript = next;
    this.#log = [...this.#log, frame].slice(-this.#options.ring);
    if (DURABLE.has(body.type)) this.#stored = [...this.#stored, next].slice(-20);
    for (const reader of [...this.#readers]) this.#deliver(reader, frame);
  }

  #take(reader: Reader, frame: ClientFrame): void {
    const { messages, open } = this.transcript;
    if (frame.type === "cancel" || frame.type === "retry" || frame.type === "trim") {
      if (this.#orders.has(frame.id)) return frame.type === "trim" ? this.#say(reader.peer, { type: "accepted", id: frame.id }) : undefined;
      this.#orders.add(frame.id);
    }
    const busy = (id: string) => this.#say(reader.peer, { type: "error", id, code: 5002, kind: "unavailable", kbs: "KBS-1003", message: "busy", recoverable: true, retry: { later: true, after_ms: 1000 }, scope: "turn" });
    const call = "call" in frame ? open?.calls.find((held) => held.call === frame.call) : undefined;
    switch (frame.type) {
      case "chat": {
        const known = messages.find(({ id, role }) => id === frame.id && role === "user");
        if (known) return this.#say(reader.peer, { type: "accepted", id: frame.id, turn: known.turn });
        if (open && frame.on_busy === "reject") return busy(frame.id);
        const turn = Math.max(0, ...messages.map((message) => message.turn)) + 1;
        this.#append({ type: "accepted", id: frame.id, turn, content: frame.content, ...(open && { queued: true }) });
        if (!open) this.#begin(0);
        return;
      }
      case "cancel": {
        const turn = frame.turn ?? open?.turn;
        if (turn === open?.turn) this.#finish("cancelled");
        else if (turn !== undefined) this.#append({ type: "done", turn, attempt: 1, message: `m_${turn}c`, reason: "cancelled", chars: 0 });
        return;
      }
      case "retry": {
        const answer = messages.find(({ turn, role }) => turn === frame.turn && role === "assistant");
        if (!answer || open || !("attempt" in answer)) return busy(frame.id);
        this.#append({ type: "rewind", turn: frame.turn, attempt: answer.attempt + 1, to: 0, reason: "retry" });
        return this.#begin(0);
      }
      case "trim":
        return this.#append({ type: "trimmed", turn: open?.turn ?? messages.at(-1)?.turn ?? 0, messages: 1, reason: "request" });
      case "tool_claim":
        if (call?.state === "offered") this.#append({ type: "tool_state", turn: open?.turn, call: call.call, state: "claimed", by: reader.client });
        return;
      case "tool_result":
        if (call?.state === "claimed") this.#finishCall(call, frame);
        return;
      case "ping":
        return this.#say(reader.peer, { type: "pong", t: frame.t });
      case "bye":
        this.#readers.delete(reader);
        return reader.peer.close(frame.forget ? 4410 : 1000);
    }
  }

  #finishCall(call: Call, { status, content }: Extract<ClientFrame, { type: "tool_result" }>): void {
    const state = status === "unknown" ? "unknown" : "done";
    this.#append({ type: "tool_state", turn: this.transcript.open?.turn, call: call.call, state, by: call.by, content });
    this.#next();
  }

  // ---- the answer

  /** Asks the provider: the pieces after the calls that were made already. */
  #begin(calls: number): void {
    this.#stop?.();
    const { open, messages } = this.transcript;
    if (!open) return;
    this.upstreamCalls++;
    const asked = messages.find(({ turn, role }) => turn === open.turn && role === "user");
    const pieces = this.#options.answer(asked?.content ?? "", open);
    let skipped = 0;
    const isCall = (piece: Piece) => typeof piece === "object" && "tool" in piece;
    this.#pieces = pieces.filter((piece) => skipped >= calls || (isCall(piece) && skipped++ && false));
    this.#done = 0;
    if (open.calls.every(({ state }) => state !== "offered" && state !== "claimed")) this.#next();
  }

  #next(): void {
    this.#stop = this.#options.schedule(() => this.#step(), this.#options.pieceMs);
  }

  #step(): void {
    const { open } = this.transcript;
    if (!open) return;
    const { turn, attempt } = open;
    if (attempt === 1) {
      const fault = this.#faults.find((due) => due.type !== "cut" && due.atPiece === this.#done);
      this.#faults = this.#faults.filter((other) => other !== fault);
      if (fault?.type === "killOwner") return this.killOwner(fault.loseWrites ? { loseWrites: fault.loseWrites } : {});
      if (fault?.type === "rewind") return this.rewind(fault.reason);
    }
    const piece = this.#pieces[this.#done++];
    if (piece === undefined) return this.#finish("stop");
    if (typeof piece === "string") this.#append({ type: "content", turn, attempt, at: open.text.length, data: piece });
    else if ("tool" in piece) {
      this.#append({ type: "tool_call", turn, attempt, call: `t_${++this.#counter}`, name: piece.tool, arguments: piece.arguments ?? {}, runs: "client", deadline_ms: 60_000, at_most_once: true });
      return;
    } else if ("retry" in piece) {
      this.#append({ type: "retry", turn, attempt: 1, max_attempts: 3, delay_ms: piece.retry, kind: piece.kind ?? "rate_limited", where: "same", answer_attempt: attempt, message: "retrying" });
      this.#stop = this.#options.schedule(() => this.#step(), piece.retry);
      return;
    } else if ("degraded" in piece) this.#append({ type: "degraded", turn, attempt, source: piece.degraded, kind: "unavailable" });
    else {
      this.#append({ type: "error", turn, attempt, code: 5002, kind: "unavailable", kbs: "KBS-1003", message: "unavailable", suggestion: "", recoverable: true, retry: { later: true, after_ms: 1000 }, scope: "turn", ...piece.error });
      return this.#finish("error");
    }
    this.#next();
  }

  #finish(reason: Reason): void {
    const { open } = this.transcript;
    if (!open) return;
    this.#stop?.();
    this.#append({ type: "done", turn: open.turn, attempt: open.attempt, message: `m_${open.turn}.${open.attempt}`, reason, chars: open.text.length });
    if (this.transcript.open) this.#begin(0);
  }

  #newEpoch(): string {
    return Math.floor(this.#options.random() * 2 ** 52).toString(36);
  }
}

/** A replay, with adjacent text as one frame. */
function merged(frames: readonly RawFrame[]): RawFrame[] {
  const out: RawFrame[] = [];
  for (const frame of frames) {
    const last = out.at(-1);
    const fits = last?.type === "content" && frame.type === "content" && last.turn === frame.turn && last.attempt === frame.attempt;
    if (fits) out[out.length - 1] = { ...frame, first: last.first ?? last.seq, at: last.at, data: last.data + frame.data };
    else out.push(frame);
  }
  return out;
}
