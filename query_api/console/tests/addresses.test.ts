/** What stands in an address is what is asked for, and nothing that the service would refuse. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { withQuery } from "../src/client/query.ts";
import { asSent, consistent, readSearch, writeSearch, type Search } from "../src/views/search/parameters.ts";

const through = (search: Search): Search =>
  readSearch(new URLSearchParams(withQuery("", writeSearch(search)).slice(1)));

test("a search comes back from its address", () => {
  const search: Search = {
    q: "river & 100 % #1?",
    collection: "a b",
    k: 5,
    graph_weight: 0,
    decompose: true,
    filter: ["status=Final|Active", "author.name=Ann Lee"],
  };
  assert.deepEqual(through(search), search);
});

test("an address of anything at all is read", () => {
  const odd = "q=x&k=many&decompose=perhaps&colour=red&filter=&filter=a%3Db&filter=a%3Db&min_confidence=";
  assert.deepEqual(readSearch(new URLSearchParams(odd)), { q: "x", filter: ["a=b"] });
});

test("options that do not go together are left out", () => {
  assert.deepEqual(consistent({ q: "x", context_chunks: 3 }), { q: "x" });
  assert.deepEqual(consistent({ q: "x", group: "chunk", decompose: true }), { q: "x", group: "chunk" });
  assert.deepEqual(consistent({ q: "x", mode: "global", min_confidence: 0.5 }), { q: "x", mode: "global" });
  assert.deepEqual(consistent({ q: "x", context: "window", context_chunks: 3 }), {
    q: "x",
    context: "window",
    context_chunks: 3,
  });
});

test("an address without a group asks for documents, without their copies", () => {
  assert.deepEqual(asSent({ q: "x" }), { q: "x", group: "document", duplicates: "exact", explain: true });
  assert.deepEqual(asSent({ q: "x", duplicates: "keep" }), { q: "x", group: "document", duplicates: "keep", explain: true });
  assert.deepEqual(asSent({ q: "x", group: "passage" }), { q: "x", group: "passage", duplicates: "keep", explain: true });
});

test("an answer is asked for by itself with a question, and otherwise as the address says", () => {
  const answers = (q: string, answer?: boolean) => asSent({ q, ...(answer === undefined ? {} : { answer }) }).answer;
  assert.equal(answers("which river floods"), true);
  assert.equal(answers("  river,  floods! "), undefined);
  assert.equal(answers("どの川が洪水を起こしますか"), true);
  assert.equal(answers("which river floods", false), undefined);
  assert.equal(answers("river", true), true);
  for (const answer of [true, false]) assert.deepEqual(through({ q: "which river floods", answer }), { q: "which river floods", answer });
});

test("several hits of one document are passages", () => {
  const several = { q: "x", max_per_document: 3 };
  assert.deepEqual(asSent(several), { ...several, group: "passage", duplicates: "keep", explain: true });
  assert.deepEqual(consistent({ ...several, group: "document" }), { q: "x", group: "document" });
});

test("what is empty is not a parameter, and lists are repeated", () => {
  assert.equal(withQuery("v1/x"), "v1/x");
  assert.equal(withQuery("v1/x", { a: "", b: null, c: false, d: 0, e: ["1", "2"], f: true }), "v1/x?d=0&e=1&e=2&f=true");
});
