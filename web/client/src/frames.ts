/**
 * The frames of the session protocol, version 1, as types.
 *
 * They are what the wire may carry, so every field that a server may leave out is optional here. Nothing in this file runs.
 */
import type { FaultKind } from "./kinds.js";

/** A piece of a user's message: a text, or an object that the server's dialect knows (an image, a file). */
export type Content = string | readonly { readonly type: string; readonly [field: string]: unknown }[];

export type Reason = "stop" | "length" | "filtered" | "cancelled" | "error";
export type CallState = "offered" | "claimed" | "done" | "unknown" | "expired";

/** A tool call of the model, complete and checked by the server. */
export interface Call {
  readonly call: string;
  readonly name: string;
  readonly arguments: unknown;
  readonly runs: "client" | "server";
  readonly state: CallState;
  /** Where in the answer it was made, in UTF-16 units. */
  readonly at: number;
  /** The client that claimed it. */
  readonly by?: string;
  readonly content?: unknown;
  /** False where the server's store cannot promise that a call runs once. */
  readonly at_most_once?: boolean;
}

export interface UserMessage {
  readonly role: "user";
  readonly turn: number;
  readonly id: string;
  readonly content: Content;
}

export interface AssistantMessage {
  readonly role: "assistant";
  readonly turn: number;
  readonly id: string;
  readonly content: string;
  readonly attempt: number;
  readonly reason: Reason;
  readonly calls?: readonly Call[];
  /** Where a lesser answer came from: cache, simple, fallback. */
  readonly degraded?: string;
  readonly error?: TurnError;
}

export type Message = UserMessage | AssistantMessage;

/** The turn that is running. */
export interface OpenTurn {
  readonly turn: number;
  readonly attempt: number;
  readonly text: string;
  readonly calls: readonly Call[];
  readonly degraded?: string;
  readonly error?: TurnError;
}

interface Logged {
  readonly seq: number;
  readonly first?: number;
  readonly turn: number;
  readonly attempt?: number;
}

export interface SessionFrame {
  readonly type: "session";
  readonly session: string;
  readonly resume?: string;
  readonly epoch: string;
  readonly seq: number;
  readonly resumed: "new" | "replay" | "snapshot" | "lost";
  readonly state?: "idle" | "running" | "waiting_tool" | "recovering";
  readonly heartbeat_ms?: number;
  readonly reconnect_ms?: number;
  readonly limits?: Readonly<Record<string, number>>;
}

export interface SnapshotFrame {
  readonly type: "snapshot";
  readonly epoch: string;
  readonly upto: number;
  /** The snapshot goes on after the message with this id, which the client holds. */
  readonly after?: string;
  readonly messages: readonly Message[];
  readonly ids?: readonly string[];
  readonly open?: OpenTurn | null;
  readonly more?: boolean;
}

export interface AcceptedFrame extends Partial<Logged> {
  readonly type: "accepted";
  readonly id: string;
  readonly content?: Content;
  readonly queued?: boolean;
}

export interface ContentFrame extends Logged {
  readonly type: "content" | "reasoning";
  readonly at: number;
  readonly data: string;
  readonly source?: string;
}

export interface ToolCallFrame extends Logged, Omit<Call, "state" | "at"> {
  readonly type: "tool_call";
  readonly deadline_ms?: number;
}

export interface ToolStateFrame extends Logged {
  readonly type: "tool_state";
  readonly call: string;
  readonly state: CallState;
  readonly by?: string;
  readonly content?: unknown;
}

export interface RetryFrame extends Logged {
  readonly type: "retry";
  readonly message: string;
  readonly max_attempts: number;
  readonly delay_ms: number;
  readonly kind: FaultKind;
  readonly where: "same" | "recover";
}

export interface RewindFrame extends Logged {
  readonly type: "rewind";
  readonly to: number;
  readonly reason: string;
}

export interface DegradedFrame extends Logged {
  readonly type: "degraded";
  readonly source: string;
  readonly kind?: FaultKind;
  readonly message?: string;
  readonly age_ms?: number;
}

export interface TrimmedFrame extends Logged {
  readonly type: "trimmed";
  readonly messages: number;
  readonly tokens?: number;
  readonly reason?: string;
}

/** What failed, and what a person may do. */
export interface TurnError {
  readonly code: number;
  readonly kind?: FaultKind;
  readonly kbs?: string;
  readonly message: string;
  readonly suggestion?: string;
  readonly recoverable: boolean;
  readonly retry?: { readonly later: boolean; readonly after_ms?: number };
  readonly scope?: "turn" | "session" | "connection";
  /** The client's id of the frame that failed. */
  readonly id?: string;
  /** The server's id of the request. */
  readonly request?: string;
}

export interface ErrorFrame extends Partial<Logged>, TurnError {
  readonly type: "error";
}

export interface DoneFrame extends Logged {
  readonly type: "done";
  readonly message: string;
  readonly reason: Reason;
  readonly chars?: number;
  readonly usage?: Readonly<Record<string, unknown>>;
  readonly degraded?: string;
}

export interface GoawayFrame {
  readonly type: "goaway";
  readonly in_ms: number;
  readonly reason?: string;
  readonly reconnect_ms?: number;
}

export interface PingFrame {
  readonly type: "ping";
  readonly t?: number;
}

export type ServerFrame =
  | SessionFrame
  | SnapshotFrame
  | AcceptedFrame
  | ContentFrame
  | ToolCallFrame
  | ToolStateFrame
  | RetryFrame
  | RewindFrame
  | DegradedFrame
  | TrimmedFrame
  | ErrorFrame
  | DoneFrame
  | GoawayFrame
  | PingFrame;

/** A tool that runs on the page, as the model gets to know it. */
export interface ToolDeclaration {
  readonly name: string;
  readonly description?: string;
  readonly parameters?: unknown;
  readonly idempotent?: boolean;
}

export type OnBusy = "reject" | "queue" | "replace";

export type ClientFrame =
  | {
      readonly type: "hello";
      readonly v: 1;
      readonly session?: string;
      readonly resume?: string;
      readonly epoch?: string;
      readonly after?: number;
      readonly client: string;
      readonly lang?: string;
      readonly can: readonly string[];
      readonly ticket?: string;
    }
  | {
      readonly type: "chat";
      readonly id: string;
      readonly content: Content;
      readonly route?: string;
      readonly tools?: readonly ToolDeclaration[];
      readonly on_busy?: OnBusy;
    }
  | { readonly type: "tool_claim"; readonly call: string }
  | {
      readonly type: "tool_result";
      readonly call: string;
      readonly status: "ok" | "error" | "unknown";
      readonly content?: unknown;
    }
  | { readonly type: "cancel"; readonly id: string; readonly turn?: number }
  | { readonly type: "retry"; readonly id: string; readonly turn: number }
  | { readonly type: "trim"; readonly id: string; readonly keep_turns?: number }
  | { readonly type: "ping" | "pong"; readonly t?: number }
  | { readonly type: "bye"; readonly forget?: boolean };
