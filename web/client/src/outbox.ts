/**
 * Messages that the server has not answered yet. They survive a reload.
 *
 * A message is `pending` until it is accepted, and is kept until its turn is done: a server that lost its last write lacks the message, and a
 * snapshot whose ids lack it makes it pending again. A snapshot never erases what was not sent.
 */
import type { Content, Message, OnBusy, ToolDeclaration } from "./frames.js";
import { MAX_OUTBOX_ENTRIES, MAX_OUTBOX_UNITS } from "./limits.js";

export interface OutboxEntry {
  readonly id: string;
  readonly content: Content;
  readonly route?: string | undefined;
  readonly tools?: readonly ToolDeclaration[] | undefined;
  readonly onBusy: OnBusy;
  readonly accepted: boolean;
}

export type Outbox = readonly OutboxEntry[];

/** The outbox with the entry; null if it is full. The same id is the same message. */
export function add(outbox: Outbox, entry: OutboxEntry): Outbox | null {
  if (outbox.some(({ id }) => id === entry.id)) return outbox;
  const next = [...outbox, entry];
  return next.length > MAX_OUTBOX_ENTRIES || JSON.stringify(next).length > MAX_OUTBOX_UNITS ? null : next;
}

export function accept(outbox: Outbox, id: string): Outbox {
  return outbox.map((entry) => (entry.id === id ? { ...entry, accepted: true } : entry));
}

export function remove(outbox: Outbox, id: string): Outbox {
  return outbox.filter((entry) => entry.id !== id);
}

/** What is left once the transcript has these messages: answered ones leave. */
export function settle(outbox: Outbox, messages: readonly Message[]): Outbox {
  return outbox.filter(({ id }) => {
    const asked = messages.find((message) => message.role === "user" && message.id === id);
    return !asked || !messages.some(({ role, turn }) => role === "assistant" && turn === asked.turn);
  });
}

/** A snapshot says which ids the server knows. One that it knows and no longer shows has been answered and trimmed. */
export function reconcile(outbox: Outbox, ids: readonly string[], messages: readonly Message[]): Outbox {
  return outbox
    .map((entry) => ({ ...entry, accepted: ids.includes(entry.id) }))
    .filter(({ id, accepted }) => !accepted || messages.some((message) => message.id === id));
}

/** What a reload left behind; nothing if it cannot be read. */
export function parse(stored: unknown): Outbox {
  if (!Array.isArray(stored)) return [];
  return stored.slice(0, MAX_OUTBOX_ENTRIES).filter((entry) => typeof entry?.id === "string" && entry.content !== undefined);
}
