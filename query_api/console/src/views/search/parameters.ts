/** A search as it is in the address, and as it is sent: the same names in both, those of `/v1/search`. What an
 *  address leaves out is the service's default, but for what a hit is: here a document. */

import type { Parameters } from "../../client/thalweg.ts";

export const MODES = ["hybrid", "vector", "keyword", "structured", "graph", "graph_rerank", "global"] as const;
export const GROUPS = ["document", "passage", "chunk"] as const;
export const CONTEXTS = ["parent", "window", "section"] as const;
export const FUSIONS = ["adaptive", "rrf", "weighted"] as const;
export const GRAPH_METHODS = ["hop", "expansion", "pagerank"] as const;
export const DUPLICATES = ["keep", "exact", "semantic"] as const;
/** What the graph channel may follow, besides predicates; the last three by `expansion` alone. */
export const EDGES = [
  "link", "statement", "relation", "named", "shared_entity", "title_mention", "mentioned_by", "residual",
  "next_chunk", "similar_to", "related_to",
] as const; // prettier-ignore
export const OPERATORS = ["=", "!=", "<", "<=", ">", ">="] as const;

const TEXTS = [
  "q", "collection", "mode", "group", "context", "fusion", "graph_method", "duplicates", "intent", "diversity", "after",
] as const; // prettier-ignore
const NUMBERS = [
  "k", "hops", "vector_weight", "keyword_weight", "graph_weight", "min_confidence", "context_chunks", "max_per_document",
] as const; // prettier-ignore
const FLAGS = ["decompose", "answer"] as const;
const LISTS = ["filter", "edges", "names"] as const;

type Text = (typeof TEXTS)[number];
type Numeric = (typeof NUMBERS)[number];
type Flag = (typeof FLAGS)[number];
type List = (typeof LISTS)[number];

export type Search = Partial<Record<Text, string>> &
  Partial<Record<Numeric, number>> &
  Partial<Record<Flag, boolean>> &
  Partial<Record<List, string[]>>;

/** The search of an address. Unknown parameters are left out. */
export function readSearch(parameters: URLSearchParams): Search {
  const search: Search = {};
  for (const name of TEXTS) {
    const value = parameters.get(name);
    if (value) search[name] = value;
  }
  for (const name of NUMBERS) {
    const value = parameters.get(name);
    if (value && Number.isFinite(Number(value))) search[name] = Number(value);
  }
  for (const name of FLAGS) {
    const value = parameters.get(name);
    if (value === "true" || value === "false") search[name] = value === "true";
  }
  for (const name of LISTS) {
    const values = [...new Set(parameters.getAll(name))].filter((each) => each !== "");
    if (values.length > 0) search[name] = values;
  }
  return search;
}

/** Its parameters in an address, without what is the default anyway. */
export function writeSearch(search: Search): Parameters {
  const { q, ...rest } = search;
  const given = Object.entries(rest).filter(([, value]) => value !== undefined && value !== "");
  return { q: q?.trim(), ...Object.fromEntries(given.map(([name, value]) => [name, value === false ? "false" : value])) };
}

/** What one hit is: a document, unless several hits of one are asked for. */
export const groupOf = ({ group, max_per_document }: Search): string =>
  group ?? ((max_per_document ?? 1) > 1 ? "passage" : "document");

/** Copies of a document are not shown beside it, unless all are asked for. */
export const duplicatesOf = (search: Search): string =>
  search.duplicates ?? (groupOf(search) === "document" ? "exact" : "keep");

const WORDS = new Intl.Segmenter(undefined, { granularity: "word" });
const ASKED_WORDS = 3;

/** Whether an answer is made: as the address says, else for what is long enough to be a question. */
export const answerOf = ({ q, answer }: Search): boolean =>
  answer ?? (q === undefined || [...WORDS.segment(q)].filter((each) => each.isWordLike).length >= ASKED_WORDS);

/** As it is sent, with what the address leaves to this page, and with the factors of each hit. */
export const asSent = (search: Search): Search & { explain: true } => {
  const kept = consistent(search);
  if (answerOf(kept)) kept.answer = true;
  else delete kept.answer;
  return { ...kept, group: groupOf(kept), duplicates: duplicatesOf(kept), explain: true };
};

/** Without the options that do not go with the others, which the service would refuse. */
export function consistent(search: Search): Search {
  const kept = { ...search };
  if (groupOf(kept) === "document") delete kept.max_per_document;
  if (kept.context !== "window") delete kept.context_chunks;
  if (kept.graph_method !== "expansion") delete kept.hops;
  if (kept.group === "chunk" || kept.mode === "global") delete kept.decompose;
  if (kept.mode === "structured" || kept.mode === "global") delete kept.min_confidence;
  return kept;
}
