/** What is said of a study set, and how its answers are sent. */

import type { StudyResult, StudySummary } from "../../client/thalweg.ts";
import { segment } from "../../client/requests.ts";
import { thalweg } from "../../lib/thalweg.ts";

/** What is shown here; maps and paths are for programs. */
export type Kind = "quiz" | "cards";

export const PATHS: Record<Kind, string> = { quiz: "v1/quizzes", cards: "v1/cards" };

export const addressOf = (kind: Kind, id: string): string => `${PATHS[kind]}/${segment(id)}`;

export const scopeOf = ({ kind, scope: { collection, document, entity } }: Pick<StudySummary, "kind" | "scope">): string =>
  `${kind === "quiz" ? "Quiz" : "Cards"} of ${document ?? entity ?? collection ?? "all"}`;

/** Which are right. Throws ApiError. */
export const sendAnswers = (kind: Kind, id: string, answers: readonly { question: number; answer?: string; known?: boolean }[]): Promise<StudyResult> =>
  thalweg.request(`${addressOf(kind, id)}/results`, { method: "POST", json: { answers } });
