/** The formula of a score names what the hit has, by the way the channels were merged. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { FACTORS, formulaOf } from "../src/views/search/formula.ts";

const HIT = { score: 1.5, scores: { vector: 0.78, keyword: 3.5, graph: 1.08 }, ranks: { vector: 1, keyword: 4, graph: 2 } };

test("each way of merging has its own formula", () => {
  const formula = (fusion: string) => formulaOf(HIT, "hybrid", { fusion });
  assert.equal(formula("adaptive"), "1.5000 = text score (cosine 0.780, words 3.500) + gate · graph score 1.080");
  assert.equal(formula("rrf"), "1.5000 = (1/(60 + 1) vector + 1/(60 + 4) keyword + 1/(60 + 2) graph) / that of the best");
  assert.equal(
    formulaOf(HIT, "hybrid", { fusion: "weighted", keyword_weight: 0.5 }),
    "1.5000 = 0.7 · min-max(vector 0.780) + 0.5 · min-max(keyword 3.500) + 1 · gate · min-max(graph 1.080)",
  );
});

test("one channel alone keeps its score, and what the hit lacks is not in the formula", () => {
  assert.equal(formulaOf(HIT, "graph_rerank", {}), "1.5000 = cosine 0.780 + gate · graph score 1.080");
  assert.equal(formulaOf(HIT, "keyword", {}), "1.5000 = the keyword channel's own score");
  const bare = { score: 0.5, scores: { vector: 0.4, structured: 1 }, ranks: { vector: 9, structured: 1 } };
  assert.equal(
    formulaOf(bare, "hybrid", {}),
    "0.5000 = text score (cosine 0.400) + 4 · conclusiveness · fields 1.000",
  );
});

test("the weights of the factors are those of their sum", () => {
  assert.equal(FACTORS.reduce((sum, [, weight]) => sum + weight, 0).toFixed(2), "1.00");
});
