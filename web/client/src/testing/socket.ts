/** WebSockets in memory: frames arrive in order, a little later, and a cut is noticed as a browser notices it (1006). */
import type { Socket, SocketClass } from "../environment.js";
import type { FakeServer } from "./server.js";

export function socketClass(server: FakeServer, schedule: (callback: () => void, ms: number) => () => void): SocketClass {
  return class FakeSocket implements Socket {
    onopen: ((event: any) => void) | null = null;
    onmessage: ((event: any) => void) | null = null;
    onerror: ((event: any) => void) | null = null;
    onclose: ((event: any) => void) | null = null;
    #link: ReturnType<FakeServer["connect"]> | null = null;
    #isClosed = false;

    constructor() {
      schedule(() => {
        if (this.#isClosed) return;
        if (server.isDown) return this.#end(1006);
        this.#link = server.connect({
          send: (text) => schedule(() => this.#isClosed || this.onmessage?.({ data: text }), 1),
          close: (code) => void (code === 1006 ? this.#end(code) : schedule(() => this.#end(code), 1)),
        });
        this.onopen?.({});
      }, 1);
    }

    send(text: string): void {
      const link = this.#link;
      if (!this.#isClosed) schedule(() => this.#link && link?.receive(text), 1);
    }

    close(code = 1000): void {
      schedule(() => this.#end(code), 1);
    }

    #end(code: number): void {
      if (this.#isClosed) return;
      this.#isClosed = true;
      this.#link?.closed();
      this.#link = null;
      this.onclose?.({ code, wasClean: code !== 1006 });
    }
  };
}
