/**
 * What a reader makes of frames: a pure function from a transcript and a frame to the next transcript.
 *
 * The server's reader (Rust) follows the same rules; both run the vectors in `crates/koboshi/tests/vectors/session`, whose README states them.
 * Nothing here knows sockets, time or the outbox. Frames come from outside: a field of a wrong type makes a `gap`, never an exception.
 */
import type { AssistantMessage, Call, Message, OpenTurn, SnapshotFrame, TurnError } from "./frames.js";

export interface Transcript {
  readonly epoch: string | null;
  readonly seq: number;
  readonly messages: readonly Message[];
  readonly open: OpenTurn | null;
  /** The pages of a snapshot that came so far; null while no snapshot is awaited. */
  readonly pages: readonly Message[] | null;
}

export type Outcome = "applied" | "duplicate" | "gap" | "stale" | "ignored";

/** A frame before its fields are known. */
export type RawFrame = { readonly type: string; readonly [field: string]: any };

export const EMPTY: Transcript = { epoch: null, seq: 0, messages: [], open: null, pages: null };

/** The next transcript, or why there is none. */
type Step = Transcript | Exclude<Outcome, "applied">;

export function reduce(t: Transcript, frame: RawFrame): readonly [Transcript, Outcome] {
  const next = step(t, frame);
  if (typeof next !== "string") return [next, "applied"];
  // A frame of the log that says nothing has its place there all the same.
  return [next === "stale" || (next === "ignored" && frame.seq) ? { ...t, seq: frame.seq } : t, next];
}

function step(t: Transcript, frame: RawFrame): Step {
  if (frame.type === "session") return begin(t, frame);
  if (frame.type === "snapshot") return snapshot(t, frame as unknown as SnapshotFrame);
  const { seq } = frame;
  if (seq === undefined) return "ignored";
  if (!Number.isSafeInteger(seq) || t.pages) return "gap";
  if (seq <= t.seq) return "duplicate";
  if ((frame.first ?? seq) !== t.seq + 1) return "gap";
  return logged({ ...t, seq }, frame);
}

function begin(t: Transcript, { resumed, epoch, seq }: RawFrame): Step {
  if (resumed === "new") return { ...EMPTY, epoch, seq: Number(seq) || 0 };
  if (resumed === "replay" && epoch === t.epoch) return { ...t, pages: null };
  if (resumed === "snapshot") return { ...t, pages: [] };
  return resumed === "lost" ? t : "gap";
}

function snapshot(t: Transcript, { epoch, upto, after, messages, open = null, more }: SnapshotFrame): Step {
  if (!Array.isArray(messages) || !Number.isSafeInteger(upto)) return "gap";
  // A page that follows nothing begins the snapshot, also once more.
  let before = after === undefined ? [] : (t.pages ?? []);
  if (before.length === 0 && after !== undefined) {
    const held = t.messages.findIndex((message) => message.id === after);
    if (held < 0) return "gap";
    before = t.messages.slice(0, held + 1);
  }
  const pages = [...before, ...messages];
  return more ? { ...t, pages } : { epoch, seq: upto, messages: pages, open, pages: null };
}

/** A frame of the log, at its place. */
function logged(t: Transcript, frame: RawFrame): Step {
  const { type, turn } = frame;
  if (type === "accepted") return accepted(t, frame);
  if (type === "rewind") return rewind(t, frame);
  if (type === "tool_state") return toolState(t, frame);
  if (type === "done") return done(t, frame);
  if (!/^(content|reasoning|tool_call|retry|degraded|trimmed|error)$/.test(type)) return "ignored";
  // An error of the session speaks of no turn.
  if (turn === undefined) return t;
  const { open } = t;
  // In a retry notice `attempt` is the number of the try.
  const attempt: number | undefined = type === "retry" ? frame.answer_attempt : frame.attempt;
  if (!open || open.turn !== turn || (attempt ?? open.attempt) !== open.attempt) return "stale";
  const change = (changed: Partial<OpenTurn>) => ({ ...t, open: { ...open, ...changed } });
  switch (type) {
    case "content":
      return frame.at === open.text.length && typeof frame.data === "string" ? change({ text: open.text + frame.data }) : "gap";
    case "tool_call": {
      const { call, name, arguments: args, runs, at_most_once } = frame;
      if (open.calls.some((held) => held.call === call)) return "ignored";
      return change({ calls: [...open.calls, { call, name, arguments: args, runs, state: "offered", at: open.text.length, at_most_once: at_most_once === false ? false : undefined }] });
    }
    case "degraded":
      return change({ degraded: frame.source });
    case "error":
      return change({ error: errorOf(frame) });
    default:
      return t;
  }
}

/** What of an error belongs to its turn: all but the place in the log. */
export function errorOf({ type: _, seq: __, first: ___, turn: ____, attempt: _____, ...error }: RawFrame): TurnError {
  return error as TurnError;
}

const fresh = (turn: number): OpenTurn => ({ turn, attempt: 1, text: "", calls: [] });

const isAnswer = (message: Message): message is AssistantMessage => message.role === "assistant";

/** The turns that were accepted and have no answer, the longest waiting first. */
function waiting(messages: readonly Message[]): readonly number[] {
  const answered = new Set(messages.filter(isAnswer).map(({ turn }) => turn));
  return messages.map(({ turn }) => turn).filter((turn) => !answered.has(turn));
}

function accepted(t: Transcript, { turn, id, content, queued }: RawFrame): Step {
  const messages: Message[] = [...t.messages, { role: "user", turn, id, content }];
  return { ...t, messages, open: queued && t.open ? t.open : fresh(turn) };
}

function rewind(t: Transcript, { turn, attempt, to }: RawFrame): Step {
  const finished = t.messages.find((message): message is AssistantMessage => isAnswer(message) && message.turn === turn);
  const open = t.open ?? (finished ? { ...fresh(turn), attempt: 0, text: finished.content, calls: finished.calls ?? [] } : null);
  if (!open || open.turn !== turn || attempt <= open.attempt) return "stale";
  if (!(to >= 0 && to <= open.text.length)) return "gap";
  const messages = t.messages.filter((message) => message !== finished);
  const calls = open.calls.filter(({ at }) => at <= to);
  return { ...t, messages, open: { turn, attempt, text: open.text.slice(0, to), calls } };
}

function toolState(t: Transcript, { call, state, by, content }: RawFrame): Step {
  let known = false;
  const change = (calls: readonly Call[]) =>
    calls.map((held) => {
      if (held.call !== call) return held;
      known = true;
      return { ...held, state, by, content: content ?? held.content };
    });
  const open = t.open && { ...t.open, calls: change(t.open.calls) };
  const messages = known ? t.messages : t.messages.map((message) => (isAnswer(message) && message.calls ? { ...message, calls: change(message.calls) } : message));
  return known ? { ...t, open, messages } : "ignored";
}

function done(t: Transcript, { turn, attempt, message: id, reason, chars, degraded }: RawFrame): Step {
  const running = t.open?.turn === turn ? t.open : null;
  if (!running && !waiting(t.messages).includes(turn)) return "stale";
  // A turn that was cancelled while it waited has no text.
  const open = running ?? { ...fresh(turn), attempt };
  if (attempt !== open.attempt) return "stale";
  if (chars !== open.text.length) return "gap";
  const message: AssistantMessage = {
    role: "assistant", turn, id, content: open.text, attempt, reason,
    calls: open.calls.length ? open.calls : undefined,
    degraded: degraded ?? open.degraded,
    error: open.error,
  };
  const messages = [...t.messages];
  messages.splice(messages.map((held) => held.turn).lastIndexOf(turn) + 1, 0, message);
  const [next] = waiting(messages);
  return { ...t, messages, open: running ? (next === undefined ? null : fresh(next)) : t.open };
}
