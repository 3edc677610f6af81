/** Our `RobustAgentClient` and `ErrorHandler` do what the published ones do: the same situations, side by side. */
import { expect, test, vi } from "vitest";
import { ErrorHandler, RobustAgentClient } from "../src/plain.js";
import { virtualClock } from "../src/testing/index.js";
// @ts-expect-error plain JavaScript
import { publishedClasses } from "./seed/load.mjs";

/** Sockets that a test plays: each one is handed out as it is made. */
function sockets() {
  const made: any[] = [];
  class Played {
    onopen: any;
    onclose: any;
    onerror: any;
    onmessage: any;
    closes = 0;
    sent: string[] = [];
    constructor(readonly url: string) {
      made.push(this);
    }
    send(text: string) {
      this.sent.push(text);
    }
    close() {
      this.closes++;
    }
  }
  return { made, Played: Played as any };
}

function both() {
  return (["ours", "published"] as const).map((who) => {
    const clock = virtualClock();
    const { made, Played } = sockets();
    const timer = (callback: () => void, ms: number) => clock.schedule(callback, ms);
    const published = publishedClasses(Played, timer);
    const make = (options: object) => (who === "ours" ? new RobustAgentClient("ws://x/ws", { ...options, WebSocket: Played, schedule: clock.schedule }) : new published.RobustAgentClient("ws://x/ws", options));
    return { who, clock, made, make, Handler: who === "ours" ? ErrorHandler : published.ErrorHandler };
  });
}

for (const { who, clock, made, make, Handler } of both()) {
  test(`${who}: three attempts, with a doubling wait, then an error that is not recoverable`, async () => {
    const client = make({ retryDelay: 100 });
    const errors: any[] = [];
    client.onError((error: any) => errors.push(error));
    const failed = client.connect().then(() => "connected", () => "failed");
    const times: number[] = [];
    const start = clock.now();
    for (let n = 0; n < 3; n++) {
      await clock.until(() => made.length > n, 1_000);
      times.push(clock.now() - start);
      made[n].onerror(new Error("refused"));
    }
    await clock.advance(1_000);
    expect(await failed).toBe("failed");
    expect(times).toEqual([0, 100, 300]);
    expect(errors).toEqual([{ type: "connection", message: "Failed to connect after maximum retries", recoverable: false }]);
  });

  test(`${who}: an error frame reaches the handlers, and the socket is closed only if it is not recoverable`, async () => {
    const client = make({});
    const [seen, left] = [vi.fn(), vi.fn()];
    client.onError(seen);
    const leave = client.onError(left);
    const connected = client.connect();
    const socket = made.at(-1);
    socket.onopen();
    await connected;
    leave();
    const frame = { type: "error", code: 4004, message: "slow down", recoverable: true };
    socket.onmessage({ data: JSON.stringify(frame) });
    expect([seen.mock.calls, left.mock.calls.length, socket.closes]).toEqual([[[frame]], 0, 0]);
    socket.onmessage({ data: JSON.stringify({ ...frame, recoverable: false }) });
    expect(socket.closes).toBe(1);
    socket.onclose({ wasClean: false, code: 1006 });
    expect(seen.mock.lastCall).toEqual([{ type: "connection", message: "Connection closed unexpectedly", code: 1006, recoverable: true }]);
  });

  test(`${who}: errors go to the handler of their code, others to the default`, () => {
    const handler = new Handler();
    const [limited, other] = [vi.fn(), vi.fn()];
    handler.register(4004, limited);
    handler.setDefault(other);
    const error = { type: "error", code: 4004, message: "", recoverable: true };
    handler.handle(error);
    handler.handle({ ...error, code: 5001 });
    expect([limited.mock.calls.length, other.mock.calls.length]).toEqual([1, 1]);
  });
}

test("beyond the published one: handlers by kind, several for each", () => {
  const handler = new ErrorHandler();
  const calls: string[] = [];
  handler.register("rate_limited", () => calls.push("kind"));
  const leave = handler.register(4004, () => calls.push("code"));
  handler.register(4004, () => calls.push("code too"));
  const error = { type: "error", code: 4004, kind: "rate_limited", message: "", recoverable: true };
  handler.handle(error);
  leave();
  handler.handle(error);
  expect(calls).toEqual(["code", "code too", "kind", "code too", "kind"]);
});
