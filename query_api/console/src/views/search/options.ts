/** Options of a search, in plain words: each choice with a sentence on what it does. */

import type { CONTEXTS, DUPLICATES, FUSIONS, GRAPH_METHODS, GROUPS, MODES } from "./parameters.ts";

export interface Choice<Value extends string = string> {
  value: Value;
  title: string;
  help: string;
}

const choices = <Value extends string>(words: Record<Value, readonly [title: string, help: string]>): Choice<Value>[] =>
  (Object.entries(words) as [Value, readonly [string, string]][]).map(([value, [title, help]]) => ({ value, title, help }));

export const WAYS = choices<(typeof MODES)[number]>({
  hybrid: ["all ways together", "By meaning, words, fields and graph, in one order. Best for most questions."],
  vector: ["meaning", "Texts that mean something near to the question, whatever their words."],
  keyword: ["words", "Texts with words of the question; rare words count more."],
  structured: ["fields", "Documents whose fields fit what the question states of them, such as an author or a year."],
  graph: ["graph", "Texts that links, names and statements lead to from what the question names."],
  graph_rerank: ["meaning, ordered by the graph", "What is found by meaning, in the order that the graph gives it."],
  global: ["the collection as a whole", "Questions about a whole collection, answered from its communities."],
});

export const ONE_HIT_FOR = choices<(typeof GROUPS)[number]>({
  document: ["each document", "Its best passage is shown, and the next ones below."],
  passage: ["each passage", "A passage is some paragraphs of a document; its best chunk represents it."],
  chunk: ["each chunk", "A chunk is some sentences, the smallest piece that is searched."],
});

export const AROUND = choices<(typeof CONTEXTS)[number]>({
  parent: ["its passage", "An opened hit shows the passage that the match is in."],
  window: ["chunks before and after", "Each hit also brings so many chunks before and after the match."],
  section: ["its section", "Each hit also brings the section of the document that the match is in."],
});

export const REPEATED = choices<(typeof DUPLICATES)[number]>({
  keep: ["show all", "Hits that say the same all stay."],
  exact: ["hide the same text", "Of copies of a document, or of passages with the same text, only the best stays, and lists the others."],
  semantic: ["hide the same meaning", "Of hits that say the same, in other words too, only the best stays."],
});

export const GRAPH_STEPS = choices<(typeof GRAPH_METHODS)[number]>({
  hop: ["one step", "From what the question names to what is next to it. The quickest."],
  expansion: ["two steps", "Two steps both ways, for questions that need a link in between."],
  pagerank: ["spreading (PageRank)", "Weight spreads from what is named, and gathers where many ways lead."],
});

export const MERGED_BY = choices<(typeof FUSIONS)[number]>({
  adaptive: ["scores", "By the scores as they are, each way as far as it fits the question."],
  rrf: ["places", "By the place a hit has in each way; scores do not count (reciprocal rank fusion)."],
  weighted: ["weights", "By scores between 0 and 1, times the weights below."],
});

/** The name under a score of a hit, and what it means. */
export const CHANNELS: Record<string, readonly [found: string, meaning: string]> = {
  vector: ["by meaning", "How near the meaning of the text is to that of the question: the cosine of their vectors, at most 1."],
  keyword: ["by words", "Words of the question in the text; rare words count more, and there is no highest score (BM25)."],
  structured: ["by fields", "How much of what the question states of fields the document has."],
  graph: ["through the graph", "How strongly links, names and statements lead here from what the question names."],
};
