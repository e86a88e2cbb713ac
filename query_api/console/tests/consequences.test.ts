/** What the page says is lost before it takes something away. */

import assert from "node:assert/strict";
import { test } from "node:test";

import {
  deletingDocument,
  deletingNode,
  dropping,
  merging,
  rebuilding,
  redriving,
  resetting,
  switching,
  type Question,
} from "../src/lib/consequences.ts";

const KEPT = { name: "g0001-aa", state: "kept", bytes: 12_500_000, progress: null, comparison: null } as const;
const LIVE = { ...KEPT, name: "g0002-bb", state: "live" } as const;
const words = ({ title, consequences, act }: Question) => [title, ...consequences, act].join(" ");

test("dropping a generation states its size and that nothing undoes it", () => {
  const asked = words(dropping(KEPT));
  assert.match(asked, /12\.5 MB, are deleted/);
  assert.match(asked, /cannot be undone/);
  assert.match(asked, /documents stay/);
});

test("dropping a build cancels a rebuild and says how far it was", () => {
  const asked = words(dropping({ ...KEPT, state: "building", progress: { records: 300, of_records: 1700 } }));
  assert.match(asked, /Cancel the rebuild g0001-aa\?/);
  assert.match(asked, /after 300 of 1,700 records/);
  assert.match(asked, /live stores and the log stay/);
});

test("a rebuild names documents, room and the way to cancel it", () => {
  const asked = words(rebuilding(LIVE, 1));
  assert.match(asked, /The one document will be read/);
  assert.match(asked, /about 12\.5 MB/);
  assert.match(asked, /can be cancelled/);
  assert.match(words(rebuilding(undefined, undefined)), /Every document will be read/);
});

test("a switch names what is missing and the way back", () => {
  const asked = words(switching({ ...KEPT, comparison: { missing_count: 2, unexpected_count: 0 } }, "g0002-bb"));
  assert.match(asked, /from g0002-bb to g0001-aa, once that has been brought up to date/);
  assert.match(asked, /2 documents were missing/);
  assert.match(asked, /switch back/);
});

test("deleting a document counts its chunks and says what undo brings", () => {
  const asked = words(deletingDocument({ id: "lock.md", title: "", collection: "rivers", chunks: 3 }));
  assert.match(asked, /Delete lock\.md\?/);
  assert.match(asked, /lock\.md of rivers with its 3 chunks/);
  assert.match(asked, /Undo/);
});

test("deleting a node counts its edges, known or not", () => {
  const node = { label: "Ferry", text: "" };
  assert.match(words(deletingNode(node, 2)), /2 edges that people made at it stay/);
  assert.match(words(deletingNode(node, 0)), /No edge/);
  assert.match(words(deletingNode({ ...node, text: "It sails." }, null)), /9 characters\. Edges that people made/);
});

test("merges, redrives and resets say what follows", () => {
  assert.match(words(merging("Beacon", "Petrel")), /undo it here/);
  assert.match(words(redriving(1, false)), /1 record is put in the log again/);
  assert.match(words(redriving(1200, true)), /1,200 records are put in the log again/);
  assert.match(words(redriving(null, false)), /Every record that is not indexed is put/);
  const asked = words(resetting("Chunking", "rivers", { child_characters: 200, method: null }));
  assert.match(asked, /1 chosen setting will be the default again: child_characters 200\./);
});
