/** Properties come back from the form as they were, and faults in it are said. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { fromRows, toRows } from "../src/lib/properties.ts";

test("properties of any kind come back from their rows", () => {
  const properties = { size: 4, share: 0.5, open: true, code: "007", year: "1992", said: 'a "word"', long: "9007199254740993", quoted: '"x"', none: "" };
  assert.deepEqual(fromRows(toRows(properties)), properties);
});

test("numbers and truth values are read from what is typed, and empty rows left out", () => {
  const typed = [{ name: " size ", value: " 12 " }, { name: "", value: "" }, { name: "open", value: "false" }, { name: "id", value: "007" }];
  assert.deepEqual(fromRows(typed), { size: 12, open: false, id: "007" });
});

test("a value without a name and a name given twice are refused", () => {
  assert.throws(() => fromRows([{ name: "", value: "4" }]), /“4” has no name/);
  assert.throws(() => fromRows([{ name: "a", value: "1" }, { name: "a ", value: "2" }]), /Two properties are called “a”/);
});
