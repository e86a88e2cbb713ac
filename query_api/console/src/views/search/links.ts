/** Addresses of what a hit leads to. */

import type { Parameters } from "../../client/thalweg.ts";
import type { FoundHit } from "./run.svelte.ts";

/** Of the graph with the path of a hit, where the node `at` is chosen. */
export const pathOf = ({ retrieval_id, rank }: FoundHit, at?: string | null): Parameters => ({
  retrieval: retrieval_id,
  hit: rank,
  at,
});
