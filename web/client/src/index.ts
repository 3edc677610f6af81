/** `@koboshi/client`: a conversation that survives its connections. */
export type { Phase } from "./connection.js";
export type { Environment, KeyValue, Signal, Socket, SocketClass, Visibility } from "./environment.js";
export { type ClientKind, KoboshiError } from "./error.js";
export type * from "./frames.js";
export type { FaultKind } from "./kinds.js";
export {
  createSession,
  type Listener,
  type SendOptions,
  type Session,
  type SessionEvent,
  type SessionOptions,
  type SessionState,
  type TurnState,
} from "./session.js";
export type { ToolHandler, ToolOptions } from "./tools.js";
export type { Turn, TurnEvent, TurnResult } from "./turn.js";
