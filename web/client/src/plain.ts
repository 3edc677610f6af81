/**
 * `RobustAgentClient` and `ErrorHandler`, for pages that were written against plain `/ws` connections with numbered error codes.
 *
 * They behave as such pages expect: attempts with a doubling wait, errors as frames with `type`, `code`, `message` and `recoverable`, and a close after an
 * error that is not recoverable. They resume nothing: that is what `createSession` is for.
 */
import { type Environment, environment, listen, type Listeners, type Socket, tell } from "./environment.js";

export interface StreamError {
  readonly type: string;
  readonly code?: number;
  readonly kind?: string;
  readonly message: string;
  readonly recoverable: boolean;
}

export interface RobustAgentClientOptions extends Partial<Pick<Environment, "WebSocket" | "schedule">> {
  /** How often it tries to connect; 3 by default, and once at least. */
  readonly maxRetries?: number;
  /** The wait after the first failure, in milliseconds; it doubles. */
  readonly retryDelay?: number;
}

export class RobustAgentClient {
  readonly url: string;
  readonly maxRetries: number;
  readonly retryDelay: number;
  socket: Socket | null = null;
  readonly #world: Environment;
  readonly #listeners: Listeners = new Map();

  constructor(url: string, options: RobustAgentClientOptions = {}) {
    this.url = url;
    this.maxRetries = Math.max(1, options.maxRetries ?? 3);
    this.retryDelay = options.retryDelay ?? 1000;
    this.#world = environment(options);
  }

  onError(handler: (error: StreamError) => void): () => void {
    return listen(this.#listeners, "error", handler);
  }

  /** Every frame but errors. */
  onMessage(handler: (frame: any) => void): () => void {
    return listen(this.#listeners, "message", handler);
  }

  async connect(): Promise<void> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.#connect();
      } catch (error) {
        if (tries >= this.maxRetries) {
          this.#fail({ type: "connection", message: "Failed to connect after maximum retries", recoverable: false });
          throw error;
        }
        await new Promise<void>((resolve) => this.#world.schedule(resolve, this.retryDelay * 2 ** (tries - 1)));
      }
    }
  }

  send(frame: unknown): void {
    this.socket?.send(typeof frame === "string" ? frame : JSON.stringify(frame));
  }

  close(): void {
    this.socket?.close(1000);
  }

  #fail(error: StreamError): void {
    tell(this.#listeners.get("error"), error);
  }

  #connect(): Promise<void> {
    return new Promise((resolve, reject) => {
      // Where there is none, this says so.
      const socket = (this.socket = new this.#world.WebSocket!(this.url));
      let isOpen = false;
      socket.onopen = () => {
        isOpen = true;
        resolve();
      };
      socket.onerror = reject;
      socket.onmessage = ({ data }) => {
        const frame = JSON.parse(data);
        if (frame.type !== "error") return tell(this.#listeners.get("message"), frame);
        this.#fail(frame);
        if (!frame.recoverable) socket.close();
      };
      socket.onclose = ({ wasClean, code }) => {
        reject(new Error(`closed with ${code}`));
        if (isOpen && !wasClean) this.#fail({ type: "connection", message: "Connection closed unexpectedly", code, recoverable: true });
      };
    });
  }
}

/** Handlers of errors by number or kind, several for each; one for all others. */
export class ErrorHandler<E extends { readonly message: string; readonly code?: number; readonly kind?: string } = StreamError> {
  readonly #handlers: Listeners = new Map();
  #default: (error: E) => void = (error) => (globalThis as any).console?.error(`Unhandled error: ${error.message}`);

  register(key: number | string, handler: (error: E) => void): () => void {
    return listen(this.#handlers, key, handler);
  }

  setDefault(handler: (error: E) => void): void {
    this.#default = handler;
  }

  handle = (error: E): void => {
    const handlers = [error.code, error.kind].flatMap((key) => [...(this.#handlers.get(key) ?? [])]);
    tell(handlers.length ? handlers : [this.#default], error);
  };
}
