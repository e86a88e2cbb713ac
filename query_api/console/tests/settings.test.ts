/** Settings of collections as a form shows them, from the service's description of its interface. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { namedIn, parsed, rangeOf, settingsOf, type OpenApi } from "../src/views/operation/settings.ts";

const OPENAPI: OpenApi = {
  components: {
    schemas: {
      Choice: {
        properties: {
          child_characters: {
            description: "Size of a chunk.",
            anyOf: [{ type: "integer", minimum: 50, maximum: 10_000 }, { type: "null" }],
          },
          similar: { anyOf: [{ type: "number", exclusiveMinimum: 0, maximum: 1 }, { type: "null" }] },
          method: { anyOf: [{ type: "string", enum: ["sentences", "semantic"] }, { type: "null" }] },
          something_new: { anyOf: [{ type: "integer" }, { type: "null" }] },
        },
      },
    },
  },
};
const [size, weight, method, unheardOf] = settingsOf(OPENAPI, "Choice") as [never, never, never, never];

test("ranges and choices come from the description", () => {
  assert.deepEqual(
    settingsOf(OPENAPI, "Choice").map((each) => [each.name, each.kind, rangeOf(each), each.choices]),
    [
      ["child_characters", "number", "50 to 10,000", []],
      ["similar", "number", "above 0, up to 1", []],
      ["method", "choice", "", ["sentences", "semantic"]],
      ["something_new", "number", "", []],
    ],
  );
  assert.deepEqual(settingsOf(OPENAPI, "Unknown"), []);
});

test("a setting without a title of its own is called by its name", () => {
  assert.equal((unheardOf as { title: string }).title, "something new");
});

test("what is typed is sent as a number, as a choice, or not at all", () => {
  assert.equal(parsed(size, "200"), 200);
  assert.equal(parsed(weight, "0.5"), 0.5);
  assert.equal(parsed(method, "semantic"), "semantic");
  assert.equal(parsed(size, " "), null);
});

test("what does not fit is refused with what would", () => {
  assert.throws(() => parsed(size, "20"), /50 to 10,000/);
  assert.throws(() => parsed(size, "20000"), /50 to 10,000/);
  assert.throws(() => parsed(size, "99.5"), /whole number/);
  assert.throws(() => parsed(weight, "0"), /above 0, up to 1/);
  assert.throws(() => parsed(weight, "much"), /a number/);
});

test("a sentence of the service stands beside the setting it names first", () => {
  const sentence = "child_characters is too large: something_new is twice child_characters.";
  assert.equal(namedIn(sentence, settingsOf(OPENAPI, "Choice")), "child_characters");
  assert.equal(namedIn("`similarity` is none", settingsOf(OPENAPI, "Choice")), null);
});
