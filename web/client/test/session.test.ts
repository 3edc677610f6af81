/** What the API promises, one situation a test, on virtual time against the fake server. */
import { expect, test, vi } from "vitest";
import { createSession, type SessionState, type TurnEvent } from "../src/index.js";
import { cutAt, killOwnerAt, rewindAt } from "../src/testing/index.js";
import { held, memory, page, shown, tampered, world } from "./world.js";

type Clock = ReturnType<typeof world>["clock"];
type Page = ReturnType<typeof page>;

const collect = async (turn: AsyncIterable<TurnEvent>) => {
  const events: TurnEvent[] = [];
  for await (const event of turn) events.push(event);
  return events;
};

test("a turn is an iterable and a promise", async () => {
  const { clock, open, server } = world({ answer: () => ["富士山は", "3776 m です。"] });
  const s = open();
  const turn = s.send("富士山の高さは?");
  const events = collect(turn);
  await clock.until(() => s.state.messages.length === 2);
  expect(await turn).toMatchObject({ text: "富士山は3776 m です。", reason: "stop", turn: 1 });
  expect((await events).map(({ type }) => type)).toEqual(["text", "text", "done"]);
  expect(turn.accepted).toBe(true);
  expect(shown(s)).toEqual(held(server));
});

test("nothing connects before it is needed, and nothing throws", async () => {
  const { clock, open, server } = world();
  open();
  createSession({ url: "no address at all", storage: null });
  await clock.advance(60_000);
  expect(server.connections).toBe(0);
});

test.each([[1], [2], [3], [5], [8]])("a cut after frame %i leaves one answer", async (n) => {
  const { clock, open, server } = world({ faults: [cutAt(n)] });
  const s = open();
  const turn = s.send("hello");
  await clock.until(() => s.state.messages.length === 2);
  expect((await turn).text).toBe("echo: hello");
  expect(server.upstreamCalls).toBe(1);
  expect(shown(s)).toEqual(held(server));
});

test("a rewind is an event with the removed text, and the text is cut already", async () => {
  const { clock, open } = world({ faults: [rewindAt(4)] });
  const s = open();
  const turn = s.send("hi");
  const seen: (string | TurnEvent)[] = [];
  void (async () => {
    for await (const event of turn) if (event.type === "rewind") seen.push(event, turn.text);
  })();
  await clock.until(() => s.state.messages.length === 2);
  await clock.advance(0);
  expect(seen).toEqual([{ type: "rewind", to: 0, removed: "echo", reason: "connection_closed" }, ""]);
  expect(turn.text).toBe("echo: hi");
});

test("an owner that dies is taken over: one turn, the whole answer", async () => {
  const { clock, open, server } = world({ faults: [killOwnerAt(5)] });
  const s = open();
  const turn = s.send("hello");
  await clock.until(() => s.state.messages.length === 2);
  expect((await turn).text).toBe("echo: hello");
  expect(server.upstreamCalls).toBe(2);
  expect(shown(s)).toEqual(held(server));
});

test("a message whose write the server lost is sent again by the outbox", async () => {
  const { clock, open, server } = world({ faults: [killOwnerAt(3, 1)] });
  const s = open();
  const turn = s.send("hello");
  await clock.until(() => s.state.messages.length === 2);
  expect((await turn).text).toBe("echo: hello");
  expect(server.transcript.messages.filter(({ role }) => role === "user")).toHaveLength(1);
  expect(server.received.filter(({ type }) => type === "chat")).toHaveLength(2);
});

test("what is sent offline waits in the outbox, survives a reload, and is sent once", async () => {
  const { clock, open, server } = world();
  const [storage, visibility] = [memory(), page()];
  visibility.set({ online: false });
  const before = open({ storage, visibility });
  before.send("later", { id: "mine" });
  await clock.advance(120_000);
  expect(server.connections).toBe(0);
  expect(before.state.outbox).toEqual([{ id: "mine", content: "later" }]);
  // A reload: the old page is gone without a word.
  visibility.set({ online: true });
  const after = open({ storage, visibility: page() });
  expect(after.state.outbox).toHaveLength(1);
  after.subscribe(() => {});
  await clock.until(() => after.state.messages.length === 2);
  await clock.advance(60_000);
  expect(server.transcript.messages.map(({ id }) => id)).toEqual(["mine", "m_1.1"]);
});

test("a reload in mid-answer goes on with the same session and shows one answer", async () => {
  const { clock, open, server } = world();
  const storage = memory();
  const before = open({ storage });
  before.send("hello");
  await clock.until(() => (before.state.turn?.text.length ?? 0) > 4);
  before.close();
  const after = open({ storage });
  after.connect();
  await clock.until(() => after.state.messages.length === 2);
  expect(shown(after)).toEqual(held(server));
  expect(server.upstreamCalls).toBe(1);
  expect(storage.getItem("koboshi:wss://app.example/v1/session")).toContain(server.session);
});

test("one id is one turn, however often it is sent", async () => {
  const { clock, open, server } = world();
  const s = open();
  const first = s.send("hello", { id: "same" });
  expect(s.send("hello", { id: "same" })).toBe(first);
  await clock.until(() => s.state.messages.length === 2);
  s.send("hello", { id: "same" });
  await clock.advance(5_000);
  expect(server.transcript.messages).toHaveLength(2);
});

test("a full outbox rejects, and keeps what it has", async () => {
  const { open } = world();
  const visibility = page();
  visibility.set({ online: false });
  const s = open({ visibility });
  for (let n = 0; n < 50; n++) s.send(`message ${n}`);
  await expect(s.send("one more")).rejects.toMatchObject({ kind: "outbox_full" });
  expect(s.state.outbox).toHaveLength(50);
  const large = open({ visibility });
  await expect(large.send("x".repeat(300_000))).rejects.toMatchObject({ kind: "outbox_full" });
});

test("leaving the iteration leaves the turn running", async () => {
  const { clock, open } = world();
  const s = open();
  const turn = s.send("hello");
  const left = (async () => {
    for await (const _ of turn) break;
  })();
  await clock.until(() => s.state.messages.length === 2);
  await left;
  expect((await turn).reason).toBe("stop");
});

test("an aborted signal leaves the iteration and rejects the promise; the turn goes on", async () => {
  const { clock, open } = world();
  const s = open();
  const controller = new AbortController();
  const turn = s.send("hello", { signal: controller.signal });
  const events = collect(turn);
  const promise = turn.then(() => "resolved", (reason) => `left: ${reason.name}`);
  await clock.until(() => (s.state.turn?.text.length ?? 0) > 2);
  controller.abort();
  await clock.until(() => s.state.messages.length === 2);
  expect((await events).some(({ type }) => type === "done")).toBe(false);
  expect(await promise).toBe("left: AbortError");
});

test("cancel stops the turn and keeps the part that came", async () => {
  const { clock, open, server } = world();
  const s = open();
  const turn = s.send("hello");
  await clock.until(() => (s.state.turn?.text.length ?? 0) > 4);
  turn.cancel();
  turn.cancel();
  await clock.until(() => s.state.messages.length === 2);
  expect(await turn).toMatchObject({ reason: "cancelled", text: s.state.messages[1]!.content });
  expect(server.received.filter(({ type }) => type === "cancel")).toHaveLength(1);
});

test("a turn that is cancelled before it was sent never leaves the page", async () => {
  const { clock, open, server } = world();
  const visibility = page();
  visibility.set({ online: false });
  const s = open({ visibility });
  const turn = s.send("oops");
  turn.cancel();
  visibility.set({ online: true });
  await clock.advance(10_000);
  expect(await turn).toMatchObject({ reason: "cancelled", text: "" });
  expect(server.transcript.messages).toEqual([]);
});

test("a turn that is cancelled between send and accepted is cancelled once it has a number", async () => {
  const { clock, open, server } = world();
  const s = open();
  s.connect();
  await clock.until(() => s.state.connection === "open");
  const turn = s.send("hello");
  turn.cancel();
  await clock.until(() => s.state.messages.length === 2);
  expect((await turn).reason).toBe("cancelled");
  expect(server.transcript.open).toBeNull();
});

test("a failed turn rejects with the server's words, and retry asks the same again", async () => {
  let tries = 0;
  const { clock, open, server } = world({ answer: () => (tries++ === 0 ? ["half", { error: { kind: "overloaded", message: "混み合っています。" } }] : ["whole"]) });
  const s = open();
  const turn = s.send("q");
  const failed = turn.then(null, (error) => error);
  await clock.until(() => s.state.messages.length === 2);
  expect(await failed).toMatchObject({ kind: "overloaded", message: "混み合っています。", recoverable: true, retry: { later: true, afterMs: 1000 }, scope: "turn", turn: 1 });
  expect(s.state.error?.kind).toBe("overloaded");
  const again = s.retry(turn);
  expect(s.retry()).toBe(again);
  await clock.until(() => s.state.messages[1]?.content === "whole");
  expect(await again).toMatchObject({ text: "whole", reason: "stop" });
  expect(s.state.error).toBeNull();
  expect(server.transcript.messages).toHaveLength(2);
  expect(server.received.filter(({ type }) => type === "retry")).toHaveLength(1);
});

test("the wait before a retry is told before it begins", async () => {
  const { clock, open } = world({ answer: () => [{ retry: 2_000 }, "ok"] });
  const s = open();
  const turn = s.send("q");
  const events = collect(turn);
  await clock.until(() => s.state.turn?.retry != null);
  expect(s.state.turn).toMatchObject({ retry: { attempt: 1, maxAttempts: 3, at: clock.now() + 2_000 } });
  await clock.until(() => s.state.messages.length === 2);
  expect((await events).map(({ type }) => type)).toEqual(["retry", "text", "done"]);
});

test("a client tool runs once in two tabs, and its result is sent until it is taken", async () => {
  const { clock, open, server } = world({ answer: () => ["a", { tool: "weather", arguments: { city: "東京" } }, "b"], faults: [cutAt(5)] });
  const [one, two] = [open(), open()];
  const handler = vi.fn(({ city }) => ({ city, temp: 21 }));
  for (const s of [one, two]) {
    s.tool("weather", handler);
    s.connect();
  }
  one.send("?");
  await clock.until(() => one.state.messages.length === 2 && two.state.messages.length === 2);
  expect(handler).toHaveBeenCalledTimes(1);
  expect(shown(one)).toEqual(held(server));
  expect(shown(two)).toEqual(held(server));
  expect(server.transcript.messages[1]).toMatchObject({ content: "ab", calls: [{ state: "done", content: { city: "東京", temp: 21 } }] });
});

test("a tool that throws is an error result, not a crash", async () => {
  const { clock, open, server } = world({ answer: () => [{ tool: "t" }, "b"] });
  const s = open();
  s.tool("t", () => {
    throw new Error("no permission");
  });
  s.send("?");
  await clock.until(() => s.state.messages.length === 2);
  expect(server.received.find(({ type }) => type === "tool_result")).toMatchObject({ status: "error", content: "no permission" });
});

test("no attempt is made while hidden or offline, and one at once on return", async () => {
  const { clock, open, server } = world();
  const visibility = page();
  const s = open({ visibility });
  s.connect();
  await clock.until(() => s.state.connection === "open");
  visibility.set({ hidden: true });
  server.cut();
  await clock.advance(10 * 60_000);
  expect(server.connections).toBe(1);
  visibility.set({ online: false });
  visibility.set({ hidden: false });
  await clock.advance(60_000);
  expect(server.connections).toBe(1);
  const before = clock.now();
  visibility.set({ online: true });
  await clock.until(() => s.state.connection === "open");
  expect(server.connections).toBe(2);
  expect(clock.now() - before).toBeLessThan(1_000);
});

test("a hidden page with nothing to do lets go of its connection after five minutes, a busy one does not", async () => {
  const { clock, open, server } = world({ answer: () => ["a", { tool: "slow" }, "b"] });
  const [idle, busy] = [page(), page()];
  const [one, two] = [open({ visibility: idle }), open({ visibility: busy })];
  one.connect();
  two.connect();
  await clock.until(() => one.state.connection === "open" && two.state.connection === "open");
  idle.set({ hidden: true });
  await clock.advance(5 * 60_000 + 1_000);
  expect(one.state.connection).toBe("waiting");
  busy.set({ hidden: true });
  two.send("?");
  await clock.advance(6 * 60_000);
  expect(two.state.connection).toBe("open");
  idle.set({ hidden: false });
  await clock.until(() => one.state.turn?.text === "a");
  expect(server.connections).toBe(3);
});

test.each([
  ["the page is looked at again", (_clock: Clock, visibility: Page) => visibility.set({})],
  ["the clock jumped ahead", (clock: Clock) => clock.jump(3_600_000)],
  ["the clock was set back", (clock: Clock) => clock.jump(-3_600_000)],
  ["it was silent for long", (clock: Clock) => clock.advance(55_000)],
])("a socket that may be dead is asked, and replaced without an answer: %s", async (_, happens) => {
  const { clock, open, server } = world();
  const visibility = page();
  let isDeaf = false;
  const s = open({ visibility, WebSocket: tampered(server.WebSocket, (text) => (isDeaf ? null : text)) });
  s.connect();
  await clock.until(() => s.state.connection === "open");
  await clock.advance(4_000);
  await happens(clock, visibility);
  await clock.advance(9_000);
  expect(server.connections).toBe(1);
  isDeaf = true;
  await happens(clock, visibility);
  await clock.until(() => server.connections === 2, 9_000);
  isDeaf = false;
  await clock.advance(30_000);
  expect(s.state.connection).toBe("open");
});

test("the first connection is given up after connectTimeout, with an error and no timer left", async () => {
  const { clock, open, server } = world();
  server.down();
  const s = open({ connectTimeout: 30_000 });
  const turn = s.send("hello").then(null, (error) => error);
  await clock.until(() => s.state.connection === "closed", 60_000);
  expect(await turn).toMatchObject({ kind: "connection_failed", origin: "client", retry: { later: true } });
  expect(s.state.error?.kind).toBe("connection_failed");
  await clock.advance(10);
  expect(clock.waiting).toBe(0);
  server.down(false);
  s.send("hello");
  await clock.until(() => s.state.messages.length === 2);
});

test("maxRetries: 0 means one attempt", async () => {
  const { clock, open, server } = world();
  server.down();
  const s = open({ maxRetries: 0 });
  let attempts = 0;
  s.on("connection", ({ phase }) => (attempts += phase === "connecting" ? 1 : 0));
  s.connect();
  await clock.advance(60_000);
  expect([attempts, s.state.connection]).toEqual([1, "closed"]);
});

test("a connection that was open once comes back however long it takes", async () => {
  const { clock, open, server } = world();
  const s = open();
  s.connect();
  await clock.until(() => s.state.connection === "open");
  server.down();
  await clock.advance(30 * 60_000);
  server.down(false);
  await clock.advance(16_000);
  expect(s.state.connection).toBe("open");
});

test.each([[4400, "invalid_message"], [4403, "permission_denied"], [4404, "conversation_not_found"], [4406, "invalid_message"], [4409, "superseded"], [4413, "message_too_large"]])(
  "close code %i is final: %s",
  async (code, kind) => {
    const { clock, open, server } = world();
    const s = open();
    const errors: string[] = [];
    s.on("error", (error) => errors.push(error.kind));
    s.connect();
    await clock.until(() => s.state.connection === "open");
    server.cut(code);
    await clock.advance(60_000);
    expect([s.state.connection, errors, server.connections]).toEqual(["closed", [kind], 1]);
  },
);

test.each([[1001], [1012], [4200], [4208], [4500], [4503], [1011]])("after close code %i it comes back", async (code) => {
  const { clock, open, server } = world();
  const s = open();
  s.connect();
  await clock.until(() => s.state.connection === "open");
  server.cut(code);
  await clock.advance(5_000);
  expect([s.state.connection, server.connections]).toEqual(["open", 2]);
});

test("a ticket is fetched when the server asks for one, once; a second refusal is final", async () => {
  const { clock, open } = world({ ticket: "good" });
  const ticket = vi.fn(async () => "good");
  const s = open({ ticket });
  s.send("hello");
  await clock.until(() => s.state.messages.length === 2);
  expect(ticket).toHaveBeenCalledTimes(1);

  const bad = vi.fn(async () => "bad");
  const refused = open({ ticket: bad });
  const error = refused.send("hello").then(null, (reason) => reason);
  await clock.until(() => refused.state.connection === "closed");
  expect(await error).toMatchObject({ kind: "token_expired" });
  expect(bad).toHaveBeenCalledTimes(2);
});

test("a ticket may come from an address of the app's server", async () => {
  const { clock, open } = world({ ticket: "good" });
  const fetch = vi.fn(async () => ({ ok: true, status: 200, json: async () => ({ ticket: "good" }) }));
  const s = open({ ticket: "/api/ticket", fetch });
  s.send("hello");
  await clock.until(() => s.state.messages.length === 2);
  expect(fetch).toHaveBeenCalledWith("/api/ticket", { method: "POST" });
});

test("goaway moves the page within the window, and nobody sees an error", async () => {
  const { clock, open, server } = world();
  const s = open();
  const errors = vi.fn();
  s.on("error", errors);
  const turn = s.send("a long enough answer to be moved in its middle");
  await clock.until(() => (s.state.turn?.text.length ?? 0) > 3);
  server.goaway(100);
  await clock.until(() => s.state.messages.length === 2);
  expect((await turn).text).toContain("middle");
  expect([server.connections, errors.mock.calls.length]).toEqual([2, 0]);
});

test("a frame that cannot be read is reported, and the session is read again from the cursor", async () => {
  const { clock, open, server } = world();
  const errors: string[] = [];
  let isGarbled = false;
  const s = open({
    WebSocket: tampered(server.WebSocket, (text) => {
      if (isGarbled || !text.includes('"at":3')) return text;
      isGarbled = true;
      return '{"type":';
    }),
  });
  s.on("error", ({ kind }) => errors.push(kind));
  const turn = s.send("hello");
  await clock.until(() => s.state.messages.length === 2, 30_000);
  expect((await turn).text).toBe("echo: hello");
  expect(errors).toEqual(["invalid_message"]);
});

test("a listener that throws is reported and disturbs nobody", async () => {
  const { clock, open } = world();
  const report = vi.spyOn(console, "error").mockImplementation(() => {});
  const s = open();
  const states: SessionState[] = [];
  s.subscribe(() => {
    throw new Error("mine");
  });
  s.subscribe((state) => states.push(state));
  s.send("x");
  await clock.until(() => s.state.messages.length === 2);
  expect(states.at(-1)).toBe(s.state);
  expect(report).toHaveBeenCalled();
  report.mockRestore();
});

test("a late subscriber gets the current state first, and a late iterator the text so far", async () => {
  const { clock, open } = world();
  const s = open();
  const turn = s.send("hello");
  await clock.until(() => turn.text.length > 4);
  const first: SessionState[] = [];
  s.subscribe((state) => first.push(state));
  expect(first).toEqual([s.state]);
  const events = collect(turn);
  const soFar = turn.text;
  await clock.until(() => s.state.messages.length === 2);
  expect((await events)[0]).toEqual({ type: "text", text: soFar });
});

test("a replay is one change of the state", async () => {
  const { clock, open, server } = world({ pieceMs: 1 });
  const s = open();
  s.send("a rather long text that is replayed as a whole");
  await clock.until(() => (s.state.turn?.text.length ?? 0) > 2);
  const before = s.state.turn?.text.length ?? 0;
  server.cut();
  const texts = new Set<number>();
  s.subscribe((state) => texts.add(state.turn?.text.length ?? -1));
  await clock.until(() => server.connections === 2 && (s.state.turn?.text.length ?? -1) !== before);
  const [shownBefore, replayed] = [...texts];
  expect([shownBefore, texts.size]).toEqual([before, 2]);
  expect(replayed === -1 || replayed! > before + 1).toBe(true);
});

test("close is at once: one event, no timer, no listener left", async () => {
  const { clock, open } = world();
  const visibility = page();
  const s = open({ visibility });
  const closes: unknown[] = [];
  s.on("close", (event) => closes.push(event));
  const turn = s.send("hello").then(null, (error) => error.kind);
  await clock.until(() => (s.state.turn?.text.length ?? 0) > 1);
  s.close();
  s.close();
  expect([s.state.connection, closes.length, visibility.listeners]).toEqual(["closed", 1, 0]);
  expect(await turn).toBe("connection_closed");
});

test("end says bye and forgets what a reload would find", async () => {
  const { clock, open, server } = world();
  const storage = memory();
  const s = open({ storage });
  s.send("hello");
  await clock.until(() => s.state.messages.length === 2);
  s.end({ forget: true });
  await clock.advance(1_000);
  expect(server.received.at(-1)).toEqual({ type: "bye", forget: true });
  expect(storage.entries.size).toBe(0);
});

test("a session is forgotten at the server also where there is no connection, and after a reload", async () => {
  const { clock, open, server } = world();
  const [storage, visibility] = [memory(), page()];
  const s = open({ storage, visibility });
  s.send("hello");
  await clock.until(() => s.state.messages.length === 2);
  visibility.set({ online: false });
  server.down();
  await clock.until(() => s.state.connection === "waiting", 300_000);
  s.end({ forget: true });
  await clock.advance(1_000);
  s.close();
  expect(storage.entries.size).toBe(1);
  const byes = () => server.received.filter(({ type }) => type === "bye").length;
  expect(byes()).toBe(0);
  server.down(false);
  visibility.set({ online: true });
  const next = open({ storage });
  next.send("another conversation");
  await clock.until(() => byes() === 1);
  await clock.until(() => next.state.messages.some(({ content }) => content === "echo: another conversation"));
  expect([...storage.entries.keys()]).toEqual(["koboshi:wss://app.example/v1/session"]);
  expect(server.received.filter(({ type }) => type === "bye")).toEqual([{ type: "bye", forget: true }]);
});

test("time without a network or a reader does not count against connectTimeout", async () => {
  const { clock, open, server } = world();
  const visibility = page();
  visibility.set({ online: false });
  const s = open({ connectTimeout: 30_000, visibility });
  const turn = s.send("hello");
  await clock.advance(120_000);
  server.down();
  visibility.set({ online: true });
  await clock.advance(5_000);
  expect(s.state.connection).not.toBe("closed");
  visibility.set({ hidden: true });
  await clock.advance(120_000);
  server.down(false);
  visibility.set({ hidden: false });
  await clock.until(() => s.state.messages.length === 2);
  expect((await turn).text).toBe("echo: hello");
});

test("a message that could not be sent stays pending and is sent by the next connection", async () => {
  const { clock, open, server } = world();
  server.down();
  const s = open({ connectTimeout: 5_000 });
  const turn = s.send("hello").then(null, (error) => error);
  await clock.until(() => s.state.connection === "closed", 60_000);
  expect(await turn).toMatchObject({ kind: "connection_failed" });
  expect(s.state.outbox.map(({ content }) => content)).toEqual(["hello"]);
  server.down(false);
  s.connect();
  await clock.until(() => s.state.messages.length === 2);
  expect(s.state.outbox).toEqual([]);
});

test("an error says how often its turn was tried", async () => {
  const { clock, open, server } = world({ answer: () => ["half", " an answer", { error: { kind: "rate_limited" } }] });
  const s = open();
  const failure = s.send("hi").then(null, (error) => error);
  await clock.until(() => s.state.turn?.text === "half");
  server.rewind();
  await clock.until(() => s.state.messages.length === 2);
  expect(s.state.error).toMatchObject({ kind: "rate_limited", tried: 2 });
  expect(await failure).toMatchObject({ tried: 2 });
});

test("without a WebSocket the error says where to get one", async () => {
  const { clock, open } = world();
  vi.stubGlobal("WebSocket", undefined);
  const s = open({ WebSocket: undefined as any });
  const error = s.send("x").then(null, (reason) => reason);
  await clock.advance(10);
  vi.unstubAllGlobals();
  expect(await error).toMatchObject({ kind: "no_websocket", message: expect.stringContaining('pass that of "ws"') });
});

test("events() tells what happens, and ends with the session", async () => {
  const { clock, open } = world();
  const s = open();
  const types = new Set<string>();
  const all = (async () => {
    for await (const event of s.events()) types.add(event.type);
  })();
  s.send("x");
  await clock.until(() => s.state.messages.length === 2);
  s.close();
  await all;
  expect([...types].sort()).toEqual(["close", "connection", "frame"]);
});
