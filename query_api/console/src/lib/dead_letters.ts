/** Dead letters: records that could not be indexed, with the reason in words and what became of them since. */

import { PagedList } from "./paged_list.svelte.ts";
import { linkTo } from "./router.svelte.ts";
import type { DeadLetterPage, DeadLetterSummary } from "../client/thalweg.ts";

/** Newest first. */
export const deadLetters = () => new PagedList<DeadLetterSummary, DeadLetterPage>("v1/dead-letters", "dead_letters");

/** The address of one of them in the operation view, with its bytes. */
export const linkToLetter = (position: string): string | undefined => linkTo("operation", { letter: position });
