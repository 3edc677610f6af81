/** P1–P4 and P7–P9 of the session protocol, for the reducer and for the whole client on virtual time. */
import fc from "fast-check";
import { expect, test, vi } from "vitest";
import type { Piece } from "../src/testing/index.js";
import { EMPTY, type RawFrame, reduce, type Transcript } from "../src/transcript.js";
import { held, memory, seeded, shown, world } from "./world.js";

const text = fc.constantFrom("a", "bc", "富士", "🗻", "👩‍🔬 ", "\n", "山は3776 m");
const RUNS = { numRuns: Number(process.env.KOBOSHI_RUNS ?? 300) };

/** A log as a server writes it: turns with text, tools, rewinds and notices, each finished or not. */
const log = fc.array(fc.record({ pieces: fc.array(fc.oneof(text, fc.constantFrom("#rewind", "#tool", "#retry", "#error", "#unknown")), { maxLength: 12 }), reason: fc.constantFrom("stop", "cancelled", "length") }), { maxLength: 4 }).map((turns) => {
  const frames: RawFrame[] = [];
  let state: Transcript = { ...EMPTY, epoch: "e" };
  const append = (body: RawFrame) => {
    const frame = { ...body, seq: state.seq + 1 };
    const [next, outcome] = reduce(state, frame);
    if (outcome !== "applied" && body.type !== "unknown") throw new Error(`${JSON.stringify(frame)} is ${outcome}`);
    state = next;
    frames.push(frame);
  };
  turns.forEach(({ pieces, reason }, index) => {
    const turn = index + 1;
    append({ type: "accepted", id: `c-${turn}`, turn, content: "?" });
    let attempt = 1;
    let calls = 0;
    for (const piece of pieces) {
      const open = state.open!;
      const to = Math.max(0, ...open.calls.map(({ at }) => at));
      if (piece === "#rewind") append({ type: "rewind", turn, attempt: ++attempt, to, reason: "timeout" });
      else if (piece === "#tool") {
        const call = `t_${turn}_${++calls}`;
        append({ type: "tool_call", turn, attempt, call, name: "t", arguments: {}, runs: "server" });
        append({ type: "tool_state", turn, call, state: "done", content: 1 });
      } else if (piece === "#retry") append({ type: "retry", turn, attempt: 1, answer_attempt: attempt, max_attempts: 3, delay_ms: 1, kind: "timeout", where: "same", message: "" });
      else if (piece === "#error") append({ type: "error", turn, attempt, code: 5002, kind: "unavailable", kbs: "", message: "m", recoverable: true, scope: "turn" });
      else if (piece === "#unknown") append({ type: "unknown", turn });
      else append({ type: "content", turn, attempt, at: open.text.length, data: piece });
    }
    append({ type: "done", turn, attempt, message: `m_${turn}`, reason, chars: state.open!.text.length });
  });
  return { frames, state };
});

const read = (from: Transcript, frames: readonly RawFrame[]) => frames.reduce((state, frame) => reduce(state, frame)[0], from);
const start: Transcript = { ...EMPTY, epoch: "e" };

test("P2: what is replayed and what was live come to the same, from any cursor", () => {
  fc.assert(fc.property(log, fc.nat(), ({ frames, state }, at) => {
    const cursor = at % (frames.length + 1);
    const resumed = reduce(read(start, frames.slice(0, cursor)), { type: "session", resumed: "replay", epoch: "e", seq: state.seq })[0];
    expect(read(resumed, frames.slice(cursor))).toEqual(state);
  }), RUNS);
});

test("P2: a snapshot at any place, then the rest, comes to the same", () => {
  fc.assert(fc.property(log, fc.nat(), fc.nat({ max: 3 }), ({ frames, state }, at, pageSize) => {
    const cursor = at % (frames.length + 1);
    const there = read(start, frames.slice(0, cursor));
    let reader = reduce({ ...EMPTY, epoch: "older", seq: 7 }, { type: "session", resumed: "snapshot", epoch: "e", seq: there.seq })[0];
    const pages = pageSize === 0 ? [there.messages] : Array.from({ length: Math.ceil(there.messages.length / pageSize) || 1 }, (_, page) => there.messages.slice(page * pageSize, (page + 1) * pageSize));
    pages.forEach((messages, page) => {
      const after = pages[page - 1]?.at(-1)?.id;
      reader = reduce(reader, { type: "snapshot", epoch: "e", upto: there.seq, messages, ...(after !== undefined && { after }), ...(page < pages.length - 1 ? { more: true } : { ids: [], open: there.open }) })[0];
    });
    expect(read(reader, frames.slice(cursor))).toEqual(state);
  }), RUNS);
});

test("P3: merging adjacent text changes nothing", () => {
  fc.assert(fc.property(log, fc.infiniteStream(fc.boolean()), ({ frames, state }, joins) => {
    const out: RawFrame[] = [];
    for (const frame of frames) {
      const last = out.at(-1);
      if (last?.type === "content" && frame.type === "content" && last.turn === frame.turn && last.attempt === frame.attempt && joins.next().value) {
        out[out.length - 1] = { ...frame, first: last.first ?? last.seq, at: last.at, data: last.data + frame.data };
      } else out.push(frame);
    }
    expect(read(start, out)).toEqual(state);
  }), RUNS);
});

test("P4: duplicates and stale attempts are no-ops", () => {
  fc.assert(fc.property(log, fc.array(fc.nat(), { maxLength: 20 }), ({ frames, state }, places) => {
    let reader = start;
    for (const [index, frame] of frames.entries()) {
      reader = reduce(reader, frame)[0];
      for (const place of places) {
        const [same, outcome] = reduce(reader, frames[place % (index + 1)]!);
        expect([same, outcome]).toEqual([reader, "duplicate"]);
      }
      const { open } = reader;
      if (!open) continue;
      const stale = { type: "content", seq: reader.seq + 1, turn: open.turn, attempt: open.attempt + 7, at: open.text.length, data: "late" };
      expect(reduce(reader, stale)).toEqual([{ ...reader, seq: reader.seq + 1 }, "stale"]);
    }
    expect(reader).toEqual(state);
  }), RUNS);
});

test("P7: after done only a rewind may speak of the turn again", () => {
  fc.assert(fc.property(log, ({ state }) => {
    for (const { turn } of state.messages) {
      for (const type of ["content", "tool_call", "error", "retry", "degraded", "done"]) {
        const [next, outcome] = reduce(state, { type, seq: state.seq + 1, turn, attempt: 1, at: 0, data: "x", call: "new", message: "m", chars: 1 });
        expect(outcome).toBe("stale");
        expect(next.messages).toBe(state.messages);
      }
    }
  }), RUNS);
});

test("P8: any input leaves a transcript whose cursor only grows, and throws nothing", () => {
  const value = fc.oneof(fc.constantFrom(undefined, null, "", "e", -1, 0, 1, 2, 3, 1.5, 2 ** 53, NaN, true, [], {}), fc.jsonValue());
  const type = fc.constantFrom("session", "snapshot", "accepted", "content", "reasoning", "tool_call", "tool_state", "retry", "rewind", "degraded", "trimmed", "error", "done", "ping", "x");
  const names = ["seq", "first", "turn", "attempt", "at", "data", "to", "chars", "message", "messages", "resumed", "epoch", "upto", "open", "call", "state", "more", "after"] as const;
  const frame = fc.record({ type, ...Object.fromEntries(names.map((name) => [name, value])) }, { requiredKeys: ["type"] });
  fc.assert(fc.property(fc.array(frame, { maxLength: 30 }), (frames) => {
    let state: Transcript = start;
    for (const one of frames) {
      const [next, outcome] = reduce(state, one as RawFrame);
      if (outcome === "duplicate" || outcome === "gap") expect(next).toBe(state);
      state = next;
    }
  }), RUNS);
});

/** What may happen to a session, besides its own work. */
const event = fc.oneof(
  fc.record({ type: fc.constant("send"), tab: fc.nat({ max: 1 }) }),
  fc.record({ type: fc.constant("cancel"), tab: fc.nat({ max: 1 }) }),
  fc.record({ type: fc.constant("retry"), tab: fc.nat({ max: 1 }) }),
  fc.record({ type: fc.constant("cut") }),
  fc.record({ type: fc.constant("rewind") }),
  fc.record({ type: fc.constant("goaway") }),
  fc.record({ type: fc.constant("kill"), lose: fc.nat({ max: 1 }) }),
  fc.record({ type: fc.constant("reload"), tab: fc.nat({ max: 1 }) }),
);
const schedule = fc.record({ seed: fc.nat(), ring: fc.constantFrom(2, 12, 2000), pageSize: fc.constantFrom(1, 100), tool: fc.boolean(), steps: fc.array(fc.tuple(event, fc.nat({ max: 120 })), { maxLength: 25 }) });

test("P1, P5, P9: any schedule of cuts, deaths, rewinds, cancels, retries and reloads ends in equal transcripts, every message once", async () => {
  await fc.assert(fc.asyncProperty(schedule, async ({ seed, ring, pageSize, tool, steps }) => {
    const answer = (): Piece[] => ["富士", "山は", ...(tool ? [{ tool: "t", arguments: {} }] : []), "🗻", "です", "。"];
    const { clock, server, open } = world({ ring, pageSize, answer, pieceMs: 7 }, seed);
    const ran = vi.fn();
    const stores = [memory(), memory()];
    let pages = 0;
    const start = (tab: number) => {
      const session = open({ storage: stores[tab]!, random: seeded(seed * 1_000 + pages++) });
      session.tool("t", (_args, { call }) => (ran(call), 1));
      session.connect();
      return session;
    };
    const tabs = [start(0), start(1)];
    const sent: string[] = [];
    let lost = 0;
    for (const [{ type, ...of }, ms] of steps) {
      const tab = "tab" in of ? of.tab : 0;
      if (type === "send") {
        sent.push(`id-${sent.length}`);
        void tabs[tab]!.send("?", { id: sent.at(-1)! });
      } else if (type === "cancel") tabs[tab]!.cancel();
      else if (type === "retry") void tabs[tab]!.retry().then(null, () => {});
      else if (type === "cut") server.cut();
      else if (type === "rewind") server.rewind();
      else if (type === "goaway") server.goaway(50);
      else if (type === "kill") {
        lost += "lose" in of ? of.lose : 0;
        server.killOwner({ loseWrites: "lose" in of ? of.lose : 0 });
      } else {
        // A page that vanishes: it says nothing, and a new one finds its storage.
        tabs[tab]!.close();
        tabs[tab] = start(tab);
      }
      await clock.advance(ms);
    }
    const isQuiet = () => server.transcript.open === null && tabs.every(({ state }) => state.connection === "open" && state.turn === null && state.outbox.length === 0 && state.messages.length === server.transcript.messages.length);
    // What was asked for at the end may still be on its way.
    await clock.advance(60_000);
    const ended = await clock.until(isQuiet, 10 * 60_000);
    expect(ended, "every turn ends").toBe(true);
    for (const tab of tabs) expect(shown(tab)).toEqual(held(server));
    const users = server.transcript.messages.filter(({ role }) => role === "user").map(({ id }) => id);
    expect(new Set(users).size).toBe(users.length);
    for (const message of server.transcript.messages) if (message.role === "assistant" && message.reason === "stop") expect(message.content).toBe("富士山は🗻です。");
    // A store that lost a claim may offer the call again; one that keeps its writes may not.
    const calls = ran.mock.calls.map(([call]) => call);
    if (lost === 0) expect(new Set(calls).size).toBe(calls.length);
  }), { numRuns: Number(process.env.KOBOSHI_RUNS ?? 150) });
}, 60_000);
