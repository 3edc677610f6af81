/**
 * One connection after another to the same session: when to connect, how long to wait, when a silent socket is dead, what a close code means.
 *
 * It knows frames of the connection (`session`, `ping`, `pong`, `goaway`, errors without a turn) and nothing of a transcript: what to say first and
 * what to make of a frame is its owner's. Disconnecting never cancels a turn. A socket that says OPEN after sleep proves nothing, so it is asked.
 */
import type { Environment, Socket } from "./environment.js";
import { clientError, type KoboshiError, serverError } from "./error.js";
import type { ClientFrame } from "./frames.js";
import { CLOCK_JUMP_MS, CONNECT_TIMEOUT_MS, FIRST_BACKOFF_MS, HANDSHAKE_MS, HEARTBEAT_MS, HIDDEN_MS, MAX_BACKOFF_MS, MAX_FRAME_UNITS, PONG_MS, RECONNECT_MS, STABLE_MS } from "./limits.js";
import { errorOf, type RawFrame } from "./transcript.js";

/** `waiting`: between two attempts, or asleep until the page is visible and online. */
export type Phase = "idle" | "connecting" | "open" | "waiting" | "closed";

export interface ConnectionOptions {
  /** The session endpoint: `wss://…/v1/session`. */
  readonly url: string;
  /** A new ticket of the app's server, or the address that answers a POST with `{"ticket": …}`. */
  readonly ticket?: string | (() => string | Promise<string>);
  /** How long the first connection may take; 30 s by default. */
  readonly connectTimeout?: number;
  /** How many attempts may follow a failed one; 0 means none. */
  readonly maxRetries?: number;
}

export interface ConnectionOwner {
  /** The first frame of a connection, and whether it names a secret by which the session is resumed. */
  hello(): Extract<ClientFrame, { type: "hello" }>;
  frame(frame: RawFrame): void;
  phase(phase: Phase): void;
  /** Something went wrong that the connection survives. */
  warn(error: KoboshiError): void;
  /** The connection is closed for good; without an error it ended as it should. The server may have ended the session. */
  closed(error: KoboshiError | null, isEnded: boolean): void;
  /** Nothing runs and nothing waits to be sent. */
  isIdle(): boolean;
}

/** Close codes after which another attempt cannot help. */
const FATAL: Readonly<Record<number, Parameters<typeof clientError>[0]>> = {
  4400: "invalid_message",
  4401: "unauthorized",
  4403: "permission_denied",
  4404: "conversation_not_found",
  4406: "invalid_message",
  4409: "superseded",
  4413: "message_too_large",
};

export class Connection {
  phase: Phase = "idle";
  /** Raised by every connection; what was sent on an earlier one may be lost. */
  generation = 0;
  readonly #world: Environment;
  readonly #options: ConnectionOptions;
  readonly #owner: ConnectionOwner;
  #socket: Socket | null = null;
  #failures = 0;
  /** When the first attempt was made since someone looks and there is a network; it may take forever once it was open. */
  #startedAt: number | null = null;
  #openedAt: number | null = null;
  #isTicketFresh = false;
  #heartbeat = HEARTBEAT_MS;
  #reconnectMs = RECONNECT_MS;
  /** What the server said before it closed. */
  #refusal: KoboshiError | null = null;
  #heardAt = 0;
  /** Calls off each timer that runs, by its purpose. */
  readonly #timers = new Map<string, () => void>();
  #stopWatching: (() => void) | null = null;

  constructor(world: Environment, options: ConnectionOptions, owner: ConnectionOwner) {
    this.#world = world;
    this.#options = options;
    this.#owner = owner;
  }

  /** Connects if that was not done yet, or again after the end. */
  start(): void {
    if (this.phase !== "idle" && this.phase !== "closed") return;
    this.#stopWatching ??= this.#world.visibility.subscribe(() => this.#look());
    [this.#failures, this.#startedAt, this.#isTicketFresh] = [0, null, false];
    void this.#attempt();
  }

  send(frame: ClientFrame): void {
    this.#socket?.send(JSON.stringify(frame));
  }

  /** Drops the socket and comes back, because what came does not fit. */
  resync(): void {
    this.#drop();
    this.#later(this.#backoff());
  }

  close(error: KoboshiError | null = null, isEnded = false): void {
    if (this.phase === "closed") return;
    this.#drop();
    this.#stopWatching?.();
    this.#stopWatching = null;
    this.#enter("closed");
    this.#owner.closed(error, isEnded);
  }

  #enter(phase: Phase): void {
    this.phase = phase;
    this.#owner.phase(phase);
  }

  #after(purpose: string, ms: number, callback: () => void): void {
    this.#stop(purpose);
    this.#timers.set(purpose, this.#world.schedule(() => {
      this.#timers.delete(purpose);
      callback();
    }, ms));
  }

  #stop(purpose: string): void {
    this.#timers.get(purpose)?.();
    this.#timers.delete(purpose);
  }

  /** Whether an attempt is worth it: someone looks, and there is a network. A server on this machine needs none. */
  #mayTry(): boolean {
    const { hidden, online } = this.#world.visibility;
    return !hidden && (online || /\/\/(localhost|127\.|\[::1])/.test(this.#options.url));
  }

  async #attempt(): Promise<void> {
    this.#stop("retry");
    if (!this.#mayTry()) {
      if (this.#startedAt !== Infinity) this.#startedAt = null;
      return this.#enter("waiting");
    }
    this.#startedAt ??= this.#world.now();
    const generation = ++this.generation;
    const isCurrent = () => generation === this.generation && this.phase !== "closed";
    this.#enter("connecting");
    this.#refusal = null;
    this.#after("handshake", HANDSHAKE_MS, () => this.#fail());
    const hello = this.#owner.hello();
    let ticket: string | undefined;
    if (this.#options.ticket && (this.#isTicketFresh || !hello.resume)) {
      try {
        ticket = await this.#ticket(this.#options.ticket);
      } catch (cause) {
        if (isCurrent()) {
          this.#refusal = clientError("unauthorized", true, `no ticket: ${cause}`);
          this.#fail();
        }
      }
      if (!isCurrent()) return;
    }
    if (!this.#world.WebSocket) {
      return this.close(clientError("no_websocket", false, 'no WebSocket: pass that of "ws", or use Node.js 22'));
    }
    let socket: Socket;
    try {
      socket = new this.#world.WebSocket(this.#options.url, ["koboshi.v1"]);
    } catch (cause) {
      return this.close(clientError("connection_failed", false, `${cause}`));
    }
    this.#socket = socket;
    socket.onopen = () => isCurrent() && this.send({ ...hello, ticket });
    socket.onmessage = (event) => isCurrent() && this.#receive(event.data);
    socket.onerror = () => {};
    socket.onclose = (event) => isCurrent() && this.#fail(event.code);
  }

  async #ticket(ticket: NonNullable<ConnectionOptions["ticket"]>): Promise<string> {
    if (typeof ticket === "function") return ticket();
    // Called by itself: a browser's `fetch` is no method of anything else.
    const { fetch } = this.#world;
    const answer = await fetch!(ticket, { method: "POST" });
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    return (await answer.json()).ticket;
  }

  #receive(data: any): void {
    this.#heardAt = this.#world.now();
    this.#stop("pong");
    let frame: RawFrame | null = null;
    try {
      // Only a text has a length.
      if (data.length <= MAX_FRAME_UNITS) frame = JSON.parse(data);
    } catch {
      // What is no JSON is reported below.
    }
    if (typeof frame?.type !== "string") {
      this.#owner.warn(clientError("invalid_message", true, "unreadable frame"));
      return this.resync();
    }
    switch (frame.type) {
      case "session":
        this.#opened(frame);
        break;
      case "pong":
        return;
      case "goaway":
        // A moment of one's own in the window, so that clients do not come back all at once; also where the socket is closed before.
        if (frame.reconnect_ms >= 0) this.#reconnectMs = frame.reconnect_ms;
        return this.#after("retry", this.#world.random() * Math.min(frame.in_ms ?? 0, frame.reconnect_ms ?? Infinity), () => this.#replace());
      case "error":
        if (frame.seq === undefined && frame.scope !== "turn") this.#refusal = serverError(errorOf(frame));
    }
    this.#owner.frame(frame);
  }

  #opened({ heartbeat_ms, reconnect_ms }: RawFrame): void {
    this.#stop("handshake");
    [this.#openedAt, this.#startedAt, this.#isTicketFresh] = [this.#world.now(), Infinity, false];
    if (heartbeat_ms > 0) this.#heartbeat = heartbeat_ms;
    if (reconnect_ms >= 0) this.#reconnectMs = reconnect_ms;
    this.#enter("open");
    this.#watch();
    this.#look();
  }

  /** The socket is gone, or was given up. */
  #fail(code = 0): void {
    this.#drop();
    const refusal = this.#refusal;
    if (code === 1000 || code === 4410) return this.close(null, code === 4410);
    if (code === 4401 && this.#options.ticket && !this.#isTicketFresh) {
      this.#isTicketFresh = true;
      return void this.#attempt();
    }
    const fatal = FATAL[code];
    if (fatal) return this.close(refusal ?? clientError(fatal, code === 4401, `closed with ${code}`));
    const isMove = [4200, 4208, 1001, 1012].includes(code);
    const wait = Math.max(isMove ? this.#world.random() * this.#reconnectMs : this.#backoff(), refusal?.retry?.afterMs ?? 0);
    const { connectTimeout = CONNECT_TIMEOUT_MS, maxRetries = Infinity } = this.#options;
    const isTooLate = this.#world.now() - this.#startedAt! + wait > connectTimeout;
    if (isTooLate || this.#failures > maxRetries) {
      return this.close(refusal ?? clientError("connection_failed", true, `closed with ${code}`));
    }
    this.#later(wait);
  }

  /** The next wait, drawn from the whole range (full jitter). */
  #backoff(): number {
    return this.#world.random() * Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** this.#failures++);
  }

  #later(ms: number): void {
    this.#enter("waiting");
    this.#after("retry", ms, () => void this.#attempt());
  }

  /** Lets go of the socket without reading what is left in it. */
  #drop(): void {
    this.generation++;
    for (const purpose of this.#timers.keys()) this.#stop(purpose);
    if (this.#openedAt !== null && this.#world.now() - this.#openedAt > STABLE_MS) this.#failures = 0;
    this.#openedAt = null;
    const socket = this.#socket;
    this.#socket = null;
    try {
      socket?.close(1000);
    } catch {
      // It is given up either way.
    }
  }

  /** Another connection in the place of this one, at once. */
  #replace(): void {
    this.#drop();
    void this.#attempt();
  }

  /** Something about the page changed: it may be looked at again, or has a network again. */
  #look(): void {
    const { hidden } = this.#world.visibility;
    if (this.#socket && this.phase === "open") {
      if (hidden) this.#after("hidden", HIDDEN_MS, () => this.#sleep());
      else {
        this.#stop("hidden");
        this.#probe();
      }
    } else if (this.phase === "waiting" && this.#mayTry()) {
      void this.#attempt();
    }
  }

  /** A hidden page with nothing to do needs no connection; it comes back when it is looked at. */
  #sleep(): void {
    if (!this.#owner.isIdle()) return this.#after("hidden", HIDDEN_MS, () => this.#sleep());
    this.#drop();
    this.#enter("waiting");
  }

  /** Asks a socket that may be dead. Any frame is an answer. */
  #probe(): void {
    if (this.#timers.has("pong")) return;
    this.#after("pong", PONG_MS, () => this.#replace());
    this.send({ type: "ping", t: this.#world.now() });
  }

  /** Looks at the clock now and then: silence for too long, or a clock that jumped, asks the socket. No timer matters while hidden. */
  #watch(): void {
    const period = this.#heartbeat / 4;
    const expected = this.#world.now() + period;
    this.#after("tick", period, () => {
      const now = this.#world.now();
      const isSilent = now - this.#heardAt > 2.5 * this.#heartbeat;
      if (!this.#world.visibility.hidden && (isSilent || Math.abs(now - expected) > CLOCK_JUMP_MS)) {
        this.#heardAt = now;
        this.#probe();
      }
      this.#watch();
    });
  }
}
