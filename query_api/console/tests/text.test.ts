/** Marks and cuts of texts, by Unicode characters. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { characters, excerptStart, pieces, placeIn, shown, slice } from "../src/lib/text.ts";

const marked = (text: string, ...spans: [number, number][]) =>
  pieces(text, spans.map(([start, end]) => ({ start, end })))
    .filter((piece) => piece.marked)
    .map((piece) => piece.text);

test("marks count characters, not UTF-16 units", () => {
  assert.deepEqual(marked("a river", [2, 7]), ["river"]);
  assert.deepEqual(marked("🛶🛶 a river 🛶", [5, 10]), ["river"]);
  assert.deepEqual(marked("🛶 boat", [0, 1]), ["🛶"]);
});

test("the pieces are the whole text, whatever the marks are", () => {
  for (const text of ["", "plain", "🛶 a 🛶 b", "line\nline"]) {
    for (const [start, end] of [[0, 0], [0, 99], [3, 1], [98, 99], [1, 3]] as const) {
      const cut = pieces(text, [{ start, end }], { start: 1, end: 2 });
      assert.equal(cut.map((piece) => piece.text).join(""), text);
    }
  }
});

test("marks may overlap each other and the answer", () => {
  const cut = pieces("one two three", [{ start: 0, end: 7 }, { start: 4, end: 13 }], { start: 4, end: 7 });
  assert.ok(cut.every((piece) => piece.marked));
  assert.deepEqual(cut.filter((piece) => piece.answer).map((piece) => piece.text), ["two"]);
});

test("cuts count characters too", () => {
  assert.equal(slice("🛶🛶river", 2), "river");
  assert.equal(slice("🛶🛶river", 1, 3), "🛶r");
  assert.equal(slice("river", 9), "");
  assert.equal(characters("🛶🛶river"), 7);
});

test("an excerpt begins at an answer that is far down", () => {
  assert.equal(excerptStart(null), 0);
  assert.equal(excerptStart({ start: 80, end: 99 }), 0);
  assert.equal(excerptStart({ start: 81, end: 99 }), 81);
});

test("any value of metadata is a line", () => {
  assert.equal(shown(["a", 1, null]), "a, 1, null");
  assert.equal(shown({ name: "Ada" }), '{"name":"Ada"}');
});

test("a sentence is found whatever blanks are between its words, and counted in characters", () => {
  assert.deepEqual(placeIn("😀 It\n  floods (often). It rises.", "It floods (often)."), { start: 2, end: 22 });
  assert.equal(placeIn("It floods.", "It flood.s"), null);
  assert.equal(placeIn("It floods.", " "), null);
});
