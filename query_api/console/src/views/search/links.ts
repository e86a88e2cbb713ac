/** Addresses of what a hit leads to. */

import type { Parameters } from "../../lib/query.ts";
import type { Citation } from "../../lib/types.ts";
import type { FoundHit } from "./run.svelte.ts";

/** Of the graph with the path of a hit, where the node `at` is chosen. */
export const pathOf = ({ retrieval_id, rank }: FoundHit, at?: string | null): Parameters => ({
  retrieval: retrieval_id,
  hit: rank,
  at,
});

/** Of a document, opened at the very sentence that an answer has from it. */
export const sentenceOf = ({ document_id, collection, passage_id, start, end }: Citation): Parameters => ({
  id: document_id,
  in: collection,
  passage: passage_id,
  start,
  end,
});
