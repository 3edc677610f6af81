/** Orders besides messages (trim, confirm, onBusy): each is carried out once, and none is left over. */
import { expect, test } from "vitest";
import { held, shown, tampered, world } from "./world.js";

const trims = (server: { received: readonly { type: string }[] }) => server.received.filter(({ type }) => type === "trim").length;

test("a trim between two turns is sent once, also over a reconnect", async () => {
  const { clock, server, open } = world();
  const s = open();
  s.send("hello");
  await clock.until(() => s.state.messages.length === 2);
  s.trim(1);
  await clock.until(() => trims(server) === 1);
  await clock.until(() => server.transcript.seq > s.state.messages.length);
  server.cut();
  await clock.until(() => server.connections === 2 && s.state.connection === "open");
  s.send("more");
  await clock.until(() => s.state.messages.length === 4);
  expect(trims(server)).toBe(1);
});

test("a trim whose effect was missed, because a snapshot came instead, is answered and not sent for ever", async () => {
  const { clock, server, open } = world({ ring: 0 });
  const s = open({ WebSocket: tampered(server.WebSocket, (text) => (text.includes('"trimmed"') ? null : text)) });
  s.send("hello");
  await clock.until(() => s.state.messages.length === 2);
  s.trim(1);
  for (const connections of [2, 3, 4]) {
    await clock.until(() => trims(server) === Math.min(connections - 1, 2));
    await clock.advance(100);
    server.cut();
    expect(await clock.until(() => server.connections === connections && s.state.connection === "open")).toBe(true);
  }
  s.send("more");
  await clock.until(() => s.state.messages.length === 4);
  // Once to have it done, and once more because nobody knew.
  expect(trims(server)).toBe(2);
  expect(shown(s)).toEqual(held(server));
});

test("a message to a busy session waits in line, takes the place of the other one, or is refused, as its sender says", async () => {
  const { clock, server, open } = world({ pieceMs: 50 });
  const s = open({ onBusy: "reject" });
  s.send("one");
  await clock.until(() => (s.state.turn?.text.length ?? 0) > 2);
  const refused = s.send("two").then(null, (error) => error.kind);
  const queued = s.send("three", { onBusy: "queue" });
  const replacing = s.send("four", { onBusy: "replace" });
  await clock.until(() => s.state.messages.filter(({ role }) => role === "assistant").length >= 2 && !s.state.turn);
  expect(await refused).toBe("unavailable");
  expect(server.received.flatMap((frame) => (frame.type === "chat" ? [frame.on_busy] : []))).toEqual(["reject", "reject", "queue", "replace"]);
  expect([queued.accepted, replacing.accepted]).toEqual([true, true]);
});
