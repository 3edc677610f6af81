/**
 * A conversation that survives its connections: the API of the client.
 *
 * It joins the parts: frames go through the reducer (`transcript.ts`), what is not answered stays in the outbox, and whatever is due (chats, commands,
 * claims, results) is sent by one function, `#pump`, on each connection until its effect is seen in the log. Subscribers get immutable states; what a
 * reconnect replays is one change.
 */
import { Connection, type ConnectionOptions, type Phase } from "./connection.js";
import { type Environment, environment, listen, type Listeners, remember, type Signal, tell, whenAborted } from "./environment.js";
import { clientError, type KoboshiError, serverError } from "./error.js";
import type { AssistantMessage, Call, ClientFrame, Content, Message, OnBusy, ServerFrame, ToolDeclaration, TurnError } from "./frames.js";
import { MAX_CALLS, MAX_MESSAGES, MAX_OUTBOX_ENTRIES, MAX_SNAPSHOT_MESSAGES, MAX_TEXT_UNITS } from "./limits.js";
import * as outbox from "./outbox.js";
import { Queue } from "./queue.js";
import { type ToolHandler, type ToolOptions, Tools } from "./tools.js";
import { EMPTY, errorOf, type RawFrame, reduce, type Transcript } from "./transcript.js";
import { RunningTurn, type Turn, type TurnEvent, type TurnView } from "./turn.js";

export interface SessionOptions extends Partial<Environment>, ConnectionOptions {
  /** A session to go on with, where the storage names none. */
  readonly session?: string;
  /** The language of texts for people. */
  readonly lang?: string;
  /** The route or model that answers, unless `send` names one. */
  readonly route?: string;
  /** Closes the session when it aborts. */
  readonly signal?: Signal;
  /** What happens to a message while another turn runs; `queue` by default. */
  readonly onBusy?: OnBusy;
  /** Asks a person whether a tool that ran before a crash may run a second time. */
  readonly confirm?: (call: Call) => boolean | Promise<boolean>;
  /** The entry of the storage; one per conversation on a page. */
  readonly storageKey?: string;
  /** So many messages are kept in `state.messages`; 1,000 by default. */
  readonly maxMessages?: number;
}

export interface SendOptions {
  /** A key of your own, at most 64 characters: the same id is one turn, however often it is sent. */
  readonly id?: string;
  /** Abort leaves the iteration; the turn goes on. */
  readonly signal?: Signal;
  readonly tools?: readonly ToolDeclaration[];
  readonly route?: string;
  readonly onBusy?: OnBusy;
}

/** The turn that runs. */
export interface TurnState {
  readonly turn: number;
  readonly attempt: number;
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly Call[];
  readonly degraded?: string;
  readonly error?: TurnError;
  /** Another try follows; `at` is on the clock of `now`. */
  readonly retry: { readonly message: string; readonly attempt: number; readonly maxAttempts: number; readonly at: number; readonly where: string } | null;
  /** So many older messages were left out. */
  readonly trimmed: number;
  /** How often it was tried, this time among them. */
  readonly tried: number;
}

export interface SessionState {
  readonly connection: Phase;
  readonly turn: TurnState | null;
  readonly messages: readonly Message[];
  /** What the server has not accepted yet. */
  readonly outbox: readonly { readonly id: string; readonly content: Content }[];
  readonly error: KoboshiError | null;
}

export type SessionEvent =
  | { readonly type: "connection"; readonly phase: Phase }
  /** A frame of the server that changed something, as it came. */
  | { readonly type: "frame"; readonly frame: ServerFrame }
  | { readonly type: "error"; readonly error: KoboshiError }
  | { readonly type: "close"; readonly error: KoboshiError | null };

type EventOf<T extends SessionEvent["type"]> = Extract<SessionEvent, { type: T }>;
/** A handler of errors gets the error itself. */
export type Listener<T extends SessionEvent["type"]> = (event: T extends "error" ? KoboshiError : EventOf<T>) => void;

export interface Session {
  readonly state: SessionState;
  /** The id of the session, once the server has given one. */
  readonly id: string | undefined;
  connect(): void;
  send(content: Content, options?: SendOptions): Turn;
  /** The same user message once more: of this turn, or of the last one. */
  retry(turn?: Turn | number): Turn;
  cancel(turn?: Turn | number): void;
  tool(name: string, handler: ToolHandler, options?: ToolOptions): () => void;
  /** Leaves older turns out of what the model gets. */
  trim(keepTurns?: number): void;
  /** Closes the connection; the session and its turn live on at the server. */
  close(): void;
  /** Ends the session; `forget` also deletes it. */
  end(options?: { readonly forget?: boolean }): void;
  /** Gets the current state at once, then every later one. */
  subscribe(listener: (state: SessionState) => void): () => void;
  on<T extends SessionEvent["type"]>(type: T, listener: Listener<T>): () => void;
  events(): AsyncIterableIterator<SessionEvent, void>;
}

/** An order that is sent on every connection until its effect is seen. */
interface Command {
  readonly frame: Extract<ClientFrame, { type: "cancel" | "retry" | "trim" }>;
  /** Its effect is a later attempt than this one: for a retry that it runs, for a cancel that it has ended. */
  readonly afterAttempt: number;
}
/** What is said of the running turn besides its text. */
type Notices = Pick<TurnState, "turn" | "reasoning" | "retry" | "trimmed" | "tried">;
const quiet = (turn: number): Notices => ({ turn, reasoning: "", retry: null, trimmed: 0, tried: 1 });

/** Behind the key of a conversation: the one before it, which the server is still to delete. */
const FORGET = ":forget";

export function createSession(options: SessionOptions): Session {
  return new LiveSession(options);
}

class LiveSession implements Session {
  state!: SessionState;
  readonly #options: SessionOptions;
  readonly #world: Environment;
  readonly #connection: Connection;
  readonly #client: string;
  readonly #tools: Tools;
  #key: string;
  #session: string | undefined;
  #resume: string | undefined;
  #transcript: Transcript = EMPTY;
  #outbox: outbox.Outbox = [];
  /** Where each entry and command was last sent. */
  readonly #sentOn = new Map<string, number>();
  #commands: Command[] = [];
  readonly #turns = new Set<RunningTurn>();
  #notices = quiet(0);
  #done: RawFrame | undefined;
  #error: KoboshiError | null = null;
  /** The number up to which a resumed connection replays; null before the session frame. */
  #target: number | null = null;
  #gaps = 0;
  /** The server is to delete the session: it is told so until it has, also after a reload. */
  #isForgetting?: boolean;
  readonly #listeners: Listeners = new Map();
  readonly #queues = new Set<Queue<SessionEvent>>();

  constructor(options: SessionOptions) {
    this.#options = options;
    this.#world = environment(options);
    this.#client = this.#newId("tab-");
    this.#key = options.storageKey ?? `koboshi:${options.url}`;
    const stored = this.#load();
    this.#session = stored.session ?? options.session;
    this.#resume = stored.resume;
    this.#outbox = outbox.parse(stored.outbox);
    this.#tools = new Tools(Array.isArray(stored.begun) ? stored.begun : [], options.confirm, () => this.#changed());
    this.#connection = new Connection(this.#world, options, {
      hello: () => this.#hello(),
      frame: (frame) => this.#frame(frame),
      phase: (phase) => this.#phase(phase),
      warn: (error) => this.#emit({ type: "error", error }),
      closed: (...how) => this.#closed(...how),
      isIdle: () => !this.#transcript.open && !this.#outbox.length && !this.#commands.length,
    });
    this.#refresh();
    this.#isForgetting = stored.forget;
    // What an earlier page could not finish is finished beside the new conversation.
    if (stored.forget) this.connect();
    else if (this.#world.storage?.getItem(this.#key + FORGET)) createSession({ ...options, storageKey: this.#key + FORGET });
    whenAborted(options.signal, () => this.close());
  }

  get id(): string | undefined {
    return this.#session;
  }

  connect(): void {
    if (!this.#options.signal?.aborted) this.#connection.start();
  }

  send(content: Content, { id = this.#newId("c-"), signal, tools = this.#tools.declarations, route = this.#options.route, onBusy = this.#options.onBusy ?? "queue" }: SendOptions = {}): Turn {
    const known = this.#turn(id);
    if (known) return known;
    const turn = new RunningTurn(id, (cancelled) => this.#cancelTurn(cancelled), signal);
    const next = outbox.add(this.#outbox, { id, content, route, tools: tools.length ? tools : undefined, onBusy, accepted: false });
    if (!next) return turn.fail(clientError("outbox_full", true, undefined, "turn"));
    this.#outbox = next;
    this.#turns.add(turn);
    this.#error = null;
    this.connect();
    if (this.#connection.phase === "closed") turn.fail(clientError("connection_closed", false));
    this.#changed();
    return turn;
  }

  retry(which?: Turn | number): Turn {
    const turn = typeof which === "object" ? which.turn : (which ?? this.#answer()?.turn);
    const id = this.#newId("y-");
    const running = new RunningTurn(id, (cancelled) => this.#cancelTurn(cancelled), undefined, this.#answer(turn)?.attempt);
    if (turn === undefined) return running.fail(clientError("invalid_request", false, "no turn to retry", "turn"));
    for (const held of this.#turns) if (held.turn === turn && !held.isSettled) return held;
    running.turn = turn;
    this.#turns.add(running);
    this.#error = null;
    this.#command({ type: "retry", id, turn }, running.afterAttempt);
    return running;
  }

  cancel(which?: Turn | number): void {
    if (typeof which === "object") return which.cancel();
    const turn = which ?? this.#transcript.open?.turn;
    if (turn !== undefined && !this.#commands.some(({ frame }) => frame.type === "cancel" && frame.turn === turn)) {
      this.#command({ type: "cancel", id: this.#newId("x-"), turn });
    }
  }

  tool(name: string, handler: ToolHandler, options: ToolOptions = {}): () => void {
    return this.#tools.add(name, handler, options);
  }

  trim(keepTurns?: number): void {
    this.#command({ type: "trim", id: this.#newId("z-"), keep_turns: keepTurns });
  }

  close(): void {
    this.#connection.close();
  }

  end({ forget }: { readonly forget?: boolean } = {}): void {
    const [session, resume] = [this.#session, this.#resume];
    this.#outbox = [];
    this.#forget();
    if (forget && session) {
      [this.#session, this.#resume, this.#isForgetting] = [session, resume, true];
      this.#key += FORGET;
      this.connect();
      return this.#changed();
    }
    this.#connection.send({ type: "bye" });
    this.close();
  }

  subscribe = (listener: (state: SessionState) => void): (() => void) => {
    const leave = listen(this.#listeners, "state", listener);
    tell([listener], this.state);
    this.connect();
    return leave;
  };

  on<T extends SessionEvent["type"]>(type: T, listener: Listener<T>): () => void {
    return listen(this.#listeners, type, listener);
  }

  events(): AsyncIterableIterator<SessionEvent, void> {
    const queue = new Queue<SessionEvent>(() => null, (event) => event.type !== "close");
    this.#queues.add(queue);
    this.connect();
    return queue.read(() => this.#queues.delete(queue));
  }

  // ---- what comes in

  #hello(): Extract<ClientFrame, { type: "hello" }> {
    const { epoch, seq } = this.#transcript;
    // A cursor that led to a second gap is of no use: a snapshot mends it. `last` is never sent: an answer before it may have been replaced by a
    // retry while this page was away, and a snapshot that goes on after it would not say so.
    const isUsable = epoch !== null && this.#gaps < 2;
    this.#target = null;
    return {
      type: "hello",
      v: 1,
      session: this.#session,
      resume: this.#resume,
      ...(isUsable && { epoch, after: seq }),
      client: this.#client,
      lang: this.#options.lang ?? (globalThis as any).navigator?.language,
      can: ["rewind", "tools", "reasoning"],
    };
  }

  #frame(frame: RawFrame): void {
    const [next, outcome] = reduce(this.#transcript, frame);
    if (outcome === "gap" || isTooLarge(next)) {
      this.#gaps++;
      return this.#connection.resync();
    }
    this.#transcript = next;
    if (outcome === "applied" || frame.seq === undefined) this.#take(frame);
    this.#settle(frame);
    if (outcome === "applied") this.#emit({ type: "frame", frame: frame as unknown as ServerFrame });
    this.#changed();
  }

  /** What a frame means beyond the transcript. */
  #take(frame: RawFrame): void {
    const { open } = this.#transcript;
    switch (frame.type) {
      case "session":
        if (frame.resumed === "lost") return this.#connection.close(clientError("conversation_not_found", false));
        this.#session = frame.session;
        this.#resume = frame.resume ?? this.#resume;
        this.#target = frame.seq;
        return;
      case "snapshot":
        if (this.#transcript.pages) return;
        this.#outbox = outbox.reconcile(this.#outbox, frame.ids ?? [], this.#transcript.messages);
        this.#notices = quiet(0);
        return;
      case "accepted":
        this.#outbox = outbox.accept(this.#outbox, frame.id);
        this.#finishCommand(frame.id);
        return;
      case "rewind":
        this.#error = null;
        // A try that was told before its wait is counted already.
        return this.#note(frame.turn, { retry: null, reasoning: "" }, frame.reason !== "retry" && !this.#noticesOf(frame.turn).retry);
      case "reasoning":
        this.#note(frame.turn, { reasoning: this.#notices.reasoning.slice(0, frame.at) + frame.data });
        return this.#tell(frame.turn, { type: "reasoning", text: frame.data });
      case "content":
        return this.#note(frame.turn, { retry: null });
      case "retry": {
        const { type, message, attempt, max_attempts: maxAttempts, delay_ms: delayMs, kind, where } = frame;
        const retry = { message, attempt, maxAttempts, delayMs, kind, where };
        // A recovery has its rewind.
        this.#note(frame.turn, { retry: { ...retry, at: this.#world.now() + delayMs } }, where !== "recover");
        return this.#tell(frame.turn, { type, ...retry });
      }
      case "degraded":
        return this.#tell(frame.turn, { type: "degraded", source: frame.source, message: frame.message });
      case "trimmed":
        this.#note(frame.turn, { trimmed: frame.messages });
        return this.#tell(frame.turn, { type: "trimmed", messages: frame.messages });
      case "tool_call":
      case "tool_state": {
        const changed = open?.calls.find(({ call }) => call === frame.call);
        if (changed) this.#tell(frame.turn, { type: "tool", call: changed });
        return;
      }
      case "done":
        this.#done = frame;
        this.#notices = quiet(0);
        return;
      case "error":
        this.#refused(frame);
    }
  }

  /** An error of the server: of a turn, of something that was sent, or of the session. */
  #refused(frame: RawFrame): void {
    const { id } = frame;
    const error = serverError(errorOf(frame), frame.turn, this.#noticesOf(frame.turn).tried);
    this.#error = error;
    this.#outbox = outbox.remove(this.#outbox, id);
    this.#finishCommand(id);
    this.#turn(id)?.fail(error);
    this.#emit({ type: "error", error });
  }

  /** Brings turns, outbox and commands in line with the transcript. */
  #settle(frame: RawFrame): void {
    const { messages, open } = this.#transcript;
    this.#outbox = outbox.settle(this.#outbox, messages);
    this.#commands = this.#commands.filter(({ frame: command, afterAttempt }) => {
      // Between two turns it speaks of one that has ended: it changes nothing in the transcript.
      if (command.type === "trim") return frame.type !== "trimmed" || frame.reason !== "request";
      const isOpen = open?.turn === command.turn;
      const shown = isOpen ? open : this.#answer(command.turn);
      return !shown || shown.attempt <= afterAttempt || (isOpen && command.type === "cancel");
    });
    for (const turn of this.#turns) {
      turn.turn ??= messages.find(({ id, role }) => id === turn.id && role === "user")?.turn;
      const view = this.#view(turn);
      if (view) turn.sync(view, frame.type === "rewind" ? frame.reason : undefined);
      if (turn.isSettled) this.#turns.delete(turn);
    }
    const max = this.#options.maxMessages ?? MAX_MESSAGES;
    if (messages.length > max) this.#transcript = { ...this.#transcript, messages: messages.slice(-max) };
  }

  #turn(id: string): RunningTurn | undefined {
    return [...this.#turns].find((turn) => turn.id === id);
  }

  #answer(turn?: number): AssistantMessage | undefined {
    return this.#transcript.messages.filter((message): message is AssistantMessage => message.role === "assistant" && message.turn === (turn ?? message.turn)).at(-1);
  }

  #view({ id, turn, afterAttempt }: RunningTurn): TurnView | null {
    if (turn === undefined) return null;
    const { open } = this.#transcript;
    if (open?.turn === turn) return open.attempt > afterAttempt ? open : null;
    const answer = this.#answer(turn);
    if (!answer || answer.attempt <= afterAttempt) return null;
    const { id: message, content: text, reason, degraded, error } = answer;
    // The one that was shown knows how often it was tried.
    if (reason === "error") return { text, failure: this.#error?.turn === turn ? this.#error! : error ? serverError(error, turn) : clientError("internal", true, undefined, "turn") };
    return { text, result: { id, turn, text, reason, message, degraded, usage: this.#done?.turn === turn ? this.#done.usage : undefined } };
  }

  // ---- what goes out

  /** Sends what is due on this connection and has not been sent on it. */
  #pump(): void {
    const { generation } = this.#connection;
    const once = (key: string, frame: ClientFrame) => {
      if (this.#sentOn.get(key) === generation) return;
      remember(this.#sentOn, key, generation);
      this.#connection.send(frame);
    };
    if (this.#isForgetting) return once("bye", { type: "bye", forget: true });
    for (const { id, content, route, tools, onBusy, accepted } of this.#outbox) {
      if (!accepted) once(id, { type: "chat", id, content, route, tools, on_busy: onBusy });
    }
    for (const { frame } of this.#commands) once(frame.id, frame);
    this.#tools.tend(this.#transcript.open?.calls ?? [], this.#client, generation, (frame) => this.#connection.send(frame));
    for (const turn of this.#turns) if (turn.turn !== undefined && this.#toCancel.delete(turn)) this.cancel(turn.turn);
  }

  /** Turns that were cancelled before the server gave them a number. */
  readonly #toCancel = new Set<RunningTurn>();

  #cancelTurn(turn: RunningTurn): void {
    if (turn.turn !== undefined) return this.cancel(turn.turn);
    if (this.#sentOn.has(turn.id)) {
      this.#toCancel.add(turn);
      return;
    }
    // It never left this page.
    this.#outbox = outbox.remove(this.#outbox, turn.id);
    turn.sync({ text: "", result: { id: turn.id, turn: 0, text: "", reason: "cancelled", message: "" } });
    this.#turns.delete(turn);
    this.#changed();
  }

  #command(frame: Command["frame"], afterAttempt = 0): void {
    this.#commands = [...this.#commands, { frame, afterAttempt }].slice(-MAX_OUTBOX_ENTRIES);
    this.connect();
    this.#changed();
  }

  #finishCommand(id: string): void {
    this.#commands = this.#commands.filter(({ frame }) => frame.id !== id || frame.type === "cancel");
  }

  // ---- what others see

  /** Something changed: what is due is sent, the storage and the subscribers follow. A replay is one change. */
  #changed(): void {
    if (this.#connection.phase === "open") {
      if (this.#target === null || this.#transcript.seq < this.#target || this.#transcript.pages) return;
      this.#gaps = 0;
      this.#pump();
    }
    this.#save();
    this.#refresh();
  }

  #refresh(): void {
    const { open, messages } = this.#transcript;
    this.state = {
      connection: this.#connection.phase,
      turn: open && { ...this.#noticesOf(open.turn), ...open },
      messages,
      outbox: this.#outbox.filter(({ accepted }) => !accepted).map(({ id, content }) => ({ id, content })),
      error: this.#error,
    };
    tell(this.#listeners.get("state"), this.state);
  }

  #phase(phase: Phase): void {
    // An open connection is shown once it has caught up.
    if (phase !== "open") this.#refresh();
    this.#emit({ type: "connection", phase });
  }

  #closed(error: KoboshiError | null, isEnded: boolean): void {
    const isGone = error?.kind === "conversation_not_found";
    if (this.#isForgetting && isGone) error = null;
    if (isGone || (this.#isForgetting && isEnded)) this.#forget();
    this.#error = error ?? this.#error;
    const reason = error ?? clientError("connection_closed", false);
    for (const turn of this.#turns) {
      // A server that could not be reached gets it on the next connection.
      if (error?.kind !== "connection_failed") this.#outbox = outbox.remove(this.#outbox, turn.id);
      turn.fail(reason);
    }
    this.#turns.clear();
    this.#toCancel.clear();
    this.#commands = [];
    this.#save();
    this.#refresh();
    if (error) this.#emit({ type: "error", error });
    this.#emit({ type: "close", error });
    for (const queue of this.#queues) queue.end();
    this.#queues.clear();
  }

  #noticesOf(turn: number): Notices {
    return this.#notices.turn === turn ? this.#notices : quiet(turn);
  }

  #note(turn: number, change: Partial<Notices>, isNewTry = false): void {
    const known = this.#noticesOf(turn);
    this.#notices = { ...known, ...change, tried: known.tried + +isNewTry };
  }

  #tell(turn: number, event: TurnEvent): void {
    for (const running of this.#turns) {
      if (running.turn !== turn) continue;
      const view = this.#view(running);
      if (view) running.sync(view);
      running.tell(event);
    }
  }

  #emit(event: SessionEvent): void {
    for (const queue of this.#queues) queue.push(event);
    tell(this.#listeners.get(event.type), event.type === "error" ? event.error : event);
  }

  // ---- what a reload finds

  #load(): Record<string, any> {
    try {
      return JSON.parse(this.#world.storage?.getItem(this.#key) ?? "{}") ?? {};
    } catch {
      return {};
    }
  }

  /** Keeps what a reload needs; an entry that says nothing is taken away. */
  #save(): void {
    const { storage } = this.#world;
    const kept = { session: this.#session, resume: this.#resume, outbox: this.#outbox, begun: this.#tools.begun, forget: this.#isForgetting };
    try {
      if (kept.session || kept.outbox.length) storage?.setItem(this.#key, JSON.stringify(kept));
      else storage?.removeItem(this.#key);
    } catch {
      // A full or forbidden storage costs the reload, not the session.
    }
  }

  #forget(): void {
    this.#session = this.#resume = this.#isForgetting = undefined;
    this.#save();
  }

  #newId(prefix: string): string {
    const digits = () => this.#world.random().toString(36).slice(2);
    return prefix + digits() + digits();
  }
}

function isTooLarge({ open, pages }: Transcript): boolean {
  return (open && (open.text.length > MAX_TEXT_UNITS || open.calls.length > MAX_CALLS)) || (pages ?? []).length > MAX_SNAPSHOT_MESSAGES;
}
