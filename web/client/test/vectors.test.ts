/** The reader of the client and the reader of the core make the same of the same frames. */
import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { EMPTY, type RawFrame, reduce } from "../src/transcript.js";

const folder = new URL("../../../crates/koboshi/tests/vectors/session/", import.meta.url);
const files = readdirSync(folder).filter((name) => name.endsWith(".json"));

test("there are vectors", () => expect(files.length).toBeGreaterThanOrEqual(44));

for (const file of files) {
  const { name, steps, transcript } = JSON.parse(readFileSync(new URL(file, folder), "utf8"));
  test(`${file}: ${name}`, () => {
    let held = EMPTY;
    const outcomes = steps.map(({ frame }: { frame: RawFrame }) => {
      const [next, outcome] = reduce(held, frame);
      held = next;
      return outcome;
    });
    expect(outcomes).toEqual(steps.map(({ expect }: { expect: string }) => expect));
    const { pages: _, ...shared } = held;
    expect(shared).toEqual(transcript);
  });
}

test("frames of another epoch are not taken before the snapshot came", () => {
  const [waits] = reduce(EMPTY, { type: "session", resumed: "snapshot", epoch: "b", seq: 9 });
  expect(reduce(waits, { type: "content", seq: 1, turn: 1, attempt: 1, at: 0, data: "x" })[1]).toBe("gap");
  expect(reduce({ ...EMPTY, epoch: "a" }, { type: "session", resumed: "replay", epoch: "b", seq: 9 })[1]).toBe("gap");
});
