/** Dead letters: records that could not be indexed, with the reason in words and what became of them since. */

import { request } from "./api.ts";
import type { Parameters } from "./query.ts";
import { linkTo } from "./router.svelte.ts";

export interface DeadLetter {
  position: string;
  key: string | null;
  collection: string | null;
  document_id: string | null;
  source: { topic: string; partition: number; offset: number } | null;
  stage: string;
  reason: string;
  reason_title: string;
  advice: string;
  message: string;
  at: string;
  bytes: number | null;
  omitted: string | null;
  /** Open: nothing that came later replaced it. */
  state: "open" | "superseded" | "resolved";
  state_message: string | null;
  attempt: number;
}

export interface DeadLetterPage {
  dead_letters: DeadLetter[];
  next_cursor: string | null;
  /** How many of those asked for are open; null while the service does not know. */
  open: number | null;
  open_reasons: { reason: string; title: string; open: number }[];
}

/** Newest first. Throws ApiError. */
export const deadLetters = (query: Parameters, signal?: AbortSignal): Promise<DeadLetterPage> =>
  request<DeadLetterPage>("v1/dead-letters", { query, signal });

/** The address of one of them in the operation view, with its bytes. */
export const linkToLetter = (position: string): string | undefined => linkTo("operation", { letter: position });
