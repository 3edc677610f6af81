/**
 * What went wrong, as one class: `kind` and `code` for programs, `message` and `suggestion` for people.
 *
 * An error of the server carries the server's words in the reader's language. An error that the client finds by itself has `origin: "client"`
 * and an English message for developers; the error display has words of its own for those kinds.
 */
import type { TurnError } from "./frames.js";
import type { FaultKind, KINDS } from "./kinds.js";

/** What only a client can find: these are no kinds of the fault table. */
export type ClientKind = "outbox_full" | "superseded" | "no_websocket";

export interface ErrorParts {
  readonly kind: FaultKind | ClientKind;
  readonly code: number;
  readonly kbs: string;
  readonly message: string;
  readonly suggestion?: string | undefined;
  readonly recoverable: boolean;
  readonly retry?: { readonly later: boolean; readonly afterMs: number } | undefined;
  readonly scope: "turn" | "session" | "connection";
  readonly turn?: number | undefined;
  /** How often its turn was tried. */
  readonly tried?: number | undefined;
  readonly detail?: string | undefined;
  readonly origin: "server" | "client";
}

export class KoboshiError extends Error implements ErrorParts {
  override readonly name = "KoboshiError";
  declare readonly kind: ErrorParts["kind"];
  /** The number of the streaming protocol. */
  declare readonly code: number;
  /** The code that people may quote, such as KBS-3001. */
  declare readonly kbs: string;
  declare readonly suggestion?: string | undefined;
  /** The session can go on. Whether the turn may be tried again is `retry.later`. */
  declare readonly recoverable: boolean;
  declare readonly retry?: ErrorParts["retry"];
  declare readonly scope: ErrorParts["scope"];
  declare readonly turn?: number | undefined;
  declare readonly tried?: number | undefined;
  /** The id of the request, for support. */
  declare readonly detail?: string | undefined;
  declare readonly origin: ErrorParts["origin"];

  constructor({ message, ...parts }: ErrorParts) {
    super(message);
    Object.assign(this, parts);
  }
}

/** An error frame, or the error of a message in a snapshot. */
export function serverError({ retry, request: detail, recoverable = true, ...error }: TurnError, turn?: number, tried?: number): KoboshiError {
  return new KoboshiError({ kind: "internal", kbs: "", scope: "connection", ...error, recoverable, retry: retry && { later: retry.later, afterMs: retry.after_ms ?? 0 }, turn, tried, detail, origin: "server" });
}

/** The codes of the kinds that a client finds by itself; the compiler compares them with the fault table. */
const OWN: { readonly [K in FaultKind]?: (typeof KINDS)[K] } = {
  connection_failed: [1001, 1001],
  connection_closed: [1005, 1003],
  unauthorized: [2001, 2001],
  permission_denied: [2003, 2001],
  invalid_request: [4004, 3001],
  invalid_message: [4006, 3001],
  message_too_large: [4007, 3002],
  internal: [9001, 5001],
  conversation_not_found: [9002, 3001],
};

/** An error that the client found by itself. */
export function clientError(kind: keyof typeof OWN | ClientKind, later: boolean, message: string = kind, scope: ErrorParts["scope"] = "connection"): KoboshiError {
  const [digits, code] = OWN[kind as FaultKind] ?? ["", 0];
  return new KoboshiError({ kind, code, kbs: digits && `KBS-${digits}`, message, recoverable: later, retry: { later, afterMs: 0 }, scope, origin: "client" });
}
