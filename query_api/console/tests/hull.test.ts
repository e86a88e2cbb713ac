/** The outline of a community holds all its members, and has no corner too many. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { hull } from "../src/views/graph/hull.ts";

const at = (x: number, y: number) => ({ x, y });

test("only corners are kept, whatever lies inside or on a side", () => {
  const square = [at(0, 0), at(4, 0), at(4, 4), at(0, 4)];
  assert.deepEqual(hull([at(2, 2), at(4, 4), at(2, 0), at(0, 4), at(1, 3), at(0, 0), at(4, 0)]), square);
});

test("two members, one, or members in a line have an outline too", () => {
  assert.deepEqual(hull([at(3, 1), at(1, 1)]), [at(1, 1), at(3, 1)]);
  assert.deepEqual(hull([at(1, 1)]), [at(1, 1)]);
  assert.deepEqual(hull([at(2, 2), at(1, 1), at(3, 3)]), [at(1, 1), at(3, 3)]);
});
