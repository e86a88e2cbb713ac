/** An answer comes in frames, and is shown as sentences with links to their sources. */

import assert from "node:assert/strict";
import { test } from "node:test";

import type { Answer, Research, SearchFrame } from "../src/client/types.ts";
import { answerOf, answerOfNote, NO_ANSWER, placeOf, sentenceOf, withFrame, type AnswerSoFar } from "../src/lib/answer.ts";

const source = (number: number, title: string, rest: object = {}) => ({
  number, title, document_id: `${title}.md`, collection: "rivers", uri: null, chunk_id: `c${number}`, passage_id: `p${number}`,
  text: "", hit: 1, section: [], page: null, start: 10, end: 40, ...rest,
}); // prettier-ignore
const after = (...frames: [event: string, data: object][]): AnswerSoFar =>
  frames.reduce((answer, [event, data]) => withFrame(answer, { event, data } as SearchFrame), NO_ANSWER);
const shown = ({ pieces }: AnswerSoFar) => pieces.map(({ title, text, sources }) => [title, text, sources.map(({ number }) => number)]);

test("sentences come one by one, each with its source, a title once", () => {
  const first: [string, object][] = [
    ["answer.citation", source(1, "Tavel")],
    ["answer.delta", { index: 0, text: "*Tavel*: It floods. [1]", citations: [1] }],
  ];
  assert.deepEqual(shown(after(...first)), [["Tavel", "It floods.", [1]]]);
  const second: [string, object][] = [
    ["answer.citation", source(2, "Tavel")],
    ["answer.delta", { index: 1, text: "\nIt rises. [2]", citations: [2] }],
  ];
  assert.deepEqual(shown(after(...first, ...second)), [["Tavel", "It floods.", [1]], [null, "It rises.", [2]]]);
});

test("what a document has in brackets or in stars stays", () => {
  const delta = { index: 0, text: "*Tavel*: *Lyde*: it floods [1]. [2] [1]", citations: [1] };
  const answer = after(["answer.citation", source(1, "Tavel")], ["answer.delta", delta]);
  assert.deepEqual(shown(answer), [["Tavel", "*Lyde*: it floods [1]. [2]", [1]]]);
});

test("a piece of several sources has all their numbers, one of an unknown source is text alone", () => {
  const delta = { index: 0, text: "Both flood. [1] [2]", citations: [1, 2] };
  const both = after(["answer.citation", source(1, "Tavel")], ["answer.citation", source(2, "Orrow")], ["answer.delta", delta]);
  assert.deepEqual(shown(both), [[null, "Both flood.", [1, 2]]]);
  assert.deepEqual(shown(after(["answer.delta", delta])), [[null, "Both flood. [1] [2]", []]]);
});

test("a document without a title is named by its id", () => {
  const delta = { index: 0, text: "**: It floods. [1]", citations: [1] };
  const answer = after(["answer.citation", source(1, "", { document_id: "tavel.txt" })], ["answer.delta", delta]);
  assert.deepEqual(shown(answer), [["tavel.txt", "It floods.", [1]]]);
});

test("a refusal stays when further pages come, which have no answer", () => {
  const refused = { refused: true, reason: "Nothing was found.", text: "", citations: [], confidence: 0.1, form: "extract" };
  const answer = after(["hit", {}], ["done", { answer: refused }], ["done", { answer: null }]);
  assert.deepEqual(answer, { citations: [], pieces: [], whole: refused });
});

test("an answer that was kept is shown as it was when it came", () => {
  const citations = [source(1, "Tavel"), source(2, "Orrow")];
  const text = "*Tavel*: It floods [3]. [1]\nIt rises. [1]\n*Orrow*: Both flood. [1] [2]\nWithout a source [9]";
  const kept = { refused: false, reason: null, text, citations, confidence: 0.9, form: "extract" };
  assert.deepEqual(shown(answerOf(kept as unknown as Answer)), [
    ["Tavel", "It floods [3].", [1]],
    [null, "It rises.", [1]],
    [null, "*Orrow*: Both flood.", [1, 2]],
    [null, "Without a source [9]", []],
  ]);
  const refused = { ...kept, refused: true, reason: "Nothing.", text: "", citations: [] };
  assert.deepEqual(shown(answerOf(refused as unknown as Answer)), []);
});

test("a source says where it is, and opens there", () => {
  assert.equal(placeOf(source(1, "Tavel", { section: ["Tavel", "Floods", "Spring"], page: 3 })), "Floods › Spring, page 3");
  assert.equal(placeOf(source(1, "Tavel")), "");
  assert.deepEqual(sentenceOf(source(1, "Tavel", { start: 0 })), {
    id: "Tavel.md", in: "rivers", passage: "p1", start: 0, end: 40,
  }); // prettier-ignore
});

test("a note has its sentences under what was searched for, a title once", () => {
  const citations = [source(1, "Tavel", { text: "It floods." }), source(2, "Tavel", { text: "It rises." }), source(3, "Issen", { text: "It is slow." })];
  const group = (heading: string, numbers: number[]) => ({ heading, citations: numbers, retrieval_id: "r" });
  const two = answerOfNote({ groups: [group("Tavel?", [1, 2]), group("Issen?", [3])], citations } as unknown as Research);
  assert.deepEqual(shown(two), [["Tavel", "It floods.", [1]], [null, "It rises.", [2]], ["Issen", "It is slow.", [3]]]);
  assert.deepEqual(two.pieces.map(({ heading }) => heading), ["Tavel?", undefined, "Issen?"]);
  const one = answerOfNote({ groups: [group("Tavel?", [1])], citations } as unknown as Research);
  assert.equal(one.pieces[0]?.heading, undefined); // it is the question
});
