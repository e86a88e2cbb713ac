/** Hits then and now: what moved, came and went. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { compared, summary, type Ranked } from "../src/views/usage/comparison.ts";

/** Hits in their order, each by the name of its passage and document: `a1` is a passage of the document `a`. */
const ranked = (...names: string[]): Ranked[] =>
  names.map((name, place) => ({
    rank: place + 1,
    chunk_id: `${name}-${place}`,
    passage_id: name,
    document_id: name.charAt(0),
    collection: "x",
  }));

test("what moved, came and went is marked on both sides", () => {
  const marks = compared(ranked("a1", "b1", "c1", "d1"), ranked("a1", "c1", "b1", "e1"), "passage");
  assert.deepEqual(marks.then, [
    { change: "same", other: 1 },
    { change: "down", other: 3 },
    { change: "up", other: 2 },
    { change: "gone", other: null },
  ]);
  assert.deepEqual(marks.now, [
    { change: "same", other: 1 },
    { change: "up", other: 3 },
    { change: "down", other: 2 },
    { change: "new", other: null },
  ]);
  assert.equal(summary(marks), "Of the same search now: 1 as then, 2 moved, 1 new, 1 gone.");
});

test("hits are the same by what the search gave one hit for", () => {
  assert.deepEqual(compared(ranked("a1"), ranked("a2"), "document").now, [{ change: "same", other: 1 }]);
  assert.deepEqual(compared(ranked("a1"), ranked("a2"), "passage").now, [{ change: "new", other: null }]);
  assert.deepEqual(compared(ranked("a1"), ranked("a1"), "chunk").now, [{ change: "same", other: 1 }]);
  assert.deepEqual(compared(ranked("a1", "b1"), ranked("b1", "a1"), "chunk").then.map(({ change }) => change), ["gone", "gone"]);
});

test("where nothing changed, that is said", () => {
  assert.equal(summary(compared(ranked("a1"), ranked("a1"), undefined)), "The same search finds the same now.");
  assert.equal(summary(compared([], ranked("a1"), undefined)), "Of the same search now: 1 new.");
});
