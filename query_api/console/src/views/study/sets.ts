/** What is said of a study set, and how its answers are sent. */

import type { StudyResult, StudySummary } from "../../client/thalweg.ts";
import { segment } from "../../client/requests.ts";
import { thalweg } from "../../lib/thalweg.ts";

export const addressOf = (id: string): string => `v1/study/${segment(id)}`;

/** Maps and paths are for programs. */
export const isShown = ({ kind }: StudySummary): boolean => kind === "quiz" || kind === "cards";

export const scopeOf = ({ kind, scope: { collection, document, entity } }: Pick<StudySummary, "kind" | "scope">): string =>
  `${kind === "quiz" ? "Quiz" : "Cards"} of ${document ?? entity ?? collection ?? "all"}`;

/** Which are right. Throws ApiError. */
export const sendAnswers = (id: string, answers: readonly { question: number; answer?: string; known?: boolean }[]): Promise<StudyResult> =>
  thalweg.request(`${addressOf(id)}/results`, { method: "POST", json: { answers } });
