/** Labelled questions as people type them. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { meaningOf, parseQuestions, seriesOf, withDocument } from "../src/views/evaluation/report.ts";

test("questions come as lines with tabs or as JSON", () => {
  const [first, second] = parseQuestions('who?\ta.md, b.md\n\n{"id": "x", "text": "what?", "relevant": {"c.md": 2}}');
  assert.deepEqual(first, { id: "q1", text: "who?", relevant: { "a.md": 1, "b.md": 1 } });
  assert.deepEqual(second, { id: "x", text: "what?", relevant: { "c.md": 2 } });
  const [kept] = parseQuestions('{"id": "x", "text": "what?", "relevant": {"c.md": 1}, "kind": "exact"}');
  assert.equal(kept?.kind, "exact");
  assert.throws(() => parseQuestions("who?"), /Line 1 names no document/);
  assert.throws(() => parseQuestions("{}"), /Line 1 is not a JSON object/);
});

test("a document's id is replaced as a whole, and in the right place", () => {
  assert.equal(withDocument("a.md?\ta.md, aa.md,a.md.md", "a.md", "b.md"), "a.md?\tb.md, aa.md,a.md.md");
  assert.equal(withDocument("a.md without a tab", "a.md", "b.md"), "a.md without a tab");
  const json = '{"text": "a.md?", "relevant": {"a.md": 1, "aa.md": 1}}';
  assert.equal(withDocument(json, "a.md", 'b".md'), '{"text": "a.md?", "relevant": {"b\\".md": 1, "aa.md": 1}}');
});

test("measures say what they measure", () => {
  for (const name of ["nDCG@10", "R@5", "P@1", "AllGold@3", "MRR@10", "MAP@10"]) assert.notEqual(meaningOf(name), "");
  assert.match(meaningOf("R@5"), /the first 5 hits/);
});

test("first hits and all hits are two lines of the calibration plot", () => {
  const calibration = { hits: 20, expected_error: 0.1, bins: [] };
  const approach = { name: "hybrid", about: "", measures: {}, latencies: {}, calibration, first_hit_calibration: { ...calibration, hits: 2 }, questions: [] };
  assert.deepEqual(
    seriesOf(approach).map(({ name, hits }) => [name, hits]),
    [["first hits", 2], ["all hits", 20]],
  );
  assert.deepEqual(seriesOf({ ...approach, calibration: null, first_hit_calibration: null }), []);
});
