/** What is remembered is bounded, and the newest of it. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { Recent } from "../src/lib/recent.ts";

test("the values set last are there, the others are gone", () => {
  const recent = new Recent<number>(2);
  for (const [name, value] of [["a", 1], ["b", 2], ["a", 3], ["c", 4]] as const) recent.set(name, value);
  assert.deepEqual(["a", "b", "c"].map((name) => recent.get(name)), [3, undefined, 4]);
});
