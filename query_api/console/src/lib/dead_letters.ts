/** Dead letters: records that could not be indexed, with the reason in words and what became of them since. */

import { request } from "./api.ts";
import type { Parameters } from "./query.ts";
import { linkTo } from "./router.svelte.ts";
import type { DeadLetterPage } from "./types.ts";

/** Newest first. Throws ApiError. */
export const deadLetters = (query: Parameters, signal?: AbortSignal): Promise<DeadLetterPage> =>
  request<DeadLetterPage>("v1/dead-letters", { query, signal });

/** The address of one of them in the operation view, with its bytes. */
export const linkToLetter = (position: string): string | undefined => linkTo("operation", { letter: position });
