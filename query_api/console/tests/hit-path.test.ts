/** The path of a hit is found among what is shown, and told in words. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { MultiDirectedGraph } from "graphology";

import type { HitStep, RetrievedHit } from "../src/client/types.ts";
import type { EdgeKind } from "../src/views/graph/api.ts";
import { chunksOf, inWords, nodesOf, traced } from "../src/views/graph/hitPath.ts";

const step = (fields: Partial<HitStep>): HitStep => ({
  from: "a", to: "b", edge: "mentions", inverse: false, by: "graph", evidence: null, chunk_id: null, ...fields,
}); // prettier-ignore

const hit = (path: HitStep[], chunk_id = "c2"): RetrievedHit => ({
  rank: 1, chunk_id, document_id: "2", collection: "w", ranks: { vector: 1 }, path,
}); // prettier-ignore

/** Documents w/1 and w/2 with the chunks c1 and c2, which mention the entity e; c1 and c2 are alike. */
function graph() {
  const made = new MultiDirectedGraph<object, { kind: EdgeKind }>();
  for (const id of ["w/1", "w/2", "c1", "c2", "e", "other"]) made.addNode(id);
  const edges: [string, string, EdgeKind][] = [
    ["w/1", "c1", "has_chunk"], ["w/2", "c2", "has_chunk"], ["c1", "e", "mentions"], ["c2", "e", "mentions"],
    ["c1", "c2", "similar_to"], ["c1", "other", "mentions"],
  ]; // prettier-ignore
  for (const [from, to, kind] of edges) made.addDirectedEdgeWithKey(`${from} ${to}`, from, to, { kind });
  return made;
}

test("a path goes by its evidence, and not by what is merely alike", () => {
  const path = [
    step({ from: "question", to: "One", edge: "names", by: "question", to_node: "w/1" }),
    step({ from: "One", to: "E", from_node: "w/1", to_node: "e", chunk_id: "c1" }),
    step({ from: "E", to: "Two", edge: "mentioned_in", from_node: "e", to_node: "w/2", chunk_id: "c2" }),
  ];
  const { marked, further } = traced(graph(), hit(path));
  assert.deepEqual([...marked].sort(), ["c1", "c1 e", "c2", "c2 e", "e", "w/1", "w/1 c1", "w/2", "w/2 c2"]);
  assert.deepEqual(further, []);
  assert.deepEqual(chunksOf(hit(path)), ["c1", "c2"]);
  assert.deepEqual(nodesOf(hit(path)), ["w/1", "e", "w/2"]);
});

test("a step by words alone is an edge of its own", () => {
  const path = [
    step({ from: "question", to: "One", edge: "matches", by: "question", to_node: "w/1", chunk_id: "c1" }),
    step({ from: "One", to: "Two", edge: "continues", by: "words", from_node: "w/1", to_node: "w/2", chunk_id: "c2" }),
  ];
  const { marked, further } = traced(graph(), hit(path));
  assert.deepEqual(further, [{ from: "w/1", to: "w/2", kind: "step", weight: 1, label: "continues" }]);
  assert.deepEqual([...marked].sort(), ["c1", "c2", "w/1", "w/1 c1", "w/2", "w/2 c2"]);
});

test("a step whose nodes are gone, or were never told, is left out", () => {
  const path = [
    step({ from_node: "w/gone", to_node: "w/2", chunk_id: "c-gone" }),
    step({ from: "One", to: "Two" }),
  ];
  assert.deepEqual([...traced(graph(), hit(path, "c-gone")).marked], ["w/2"]);
});

test("a path is told in words", () => {
  const path = [
    step({ from: "question", to: "PEP 1", edge: "names", by: "question" }),
    step({ from: "PEP 1", to: "PEP 2", edge: "replaced_by", inverse: true }),
    step({ from: "PEP 2", to: "Index", edge: "mentioned_in" }),
    step({ from: "Index", to: "$& {to}", edge: "continues", by: "words" }),
  ];
  assert.equal(
    inWords(path),
    "The question names “PEP 1”; “PEP 2” replaced by “PEP 1”; “PEP 2” is mentioned in “Index”; words that the " +
      "question still asks for lead on to “$& {to}”, without a link.",
  );
  assert.equal(inWords([]), "");
});
