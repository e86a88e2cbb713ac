/** What is said of a study set, and how its answers are sent. */

import type { StudyResult, StudySummary } from "../../client/thalweg.ts";
import { segment } from "../../client/requests.ts";
import { plural } from "../../lib/format.ts";
import { thalweg } from "../../lib/thalweg.ts";

export type Kind = StudySummary["kind"];

export const KINDS: readonly Kind[] = ["quiz", "cards", "map", "path"];

export const PATHS: Record<Kind, string> = { quiz: "v1/quizzes", cards: "v1/cards", map: "v1/concept-maps", path: "v1/learning-paths" };

interface Words {
  /** Of one set, and of several. */
  one: string;
  many: string;
  make: string;
  making: string;
  about: string;
  unit: string;
}

export const WORDS: Record<Kind, Words> = {
  quiz: { one: "Quiz", many: "Quizzes", make: "Make a quiz", making: "Making …", about: "Questions with four options each", unit: "question" },
  cards: { one: "Cards", many: "Cards", make: "Make cards", making: "Making …", about: "Sentences with a gap, to be turned over", unit: "card" },
  map: { one: "Concept map", many: "Concept maps", make: "Draw a concept map", making: "Drawing …", about: "What is connected, and how", unit: "concept" },
  path: { one: "Learning path", many: "Learning paths", make: "Find a learning path", making: "Finding …", about: "What comes first, and what builds on it", unit: "step" },
};

export const addressOf = (kind: Kind, id: string): string => `${PATHS[kind]}/${segment(id)}`;

export const scopeOf = ({ kind, scope: { collection, document, entity } }: Pick<StudySummary, "kind" | "scope">): string =>
  `${WORDS[kind].one} of ${document ?? entity ?? collection ?? "all"}`;

export const sizeOf = ({ kind, size }: Pick<StudySummary, "kind" | "size">): string => plural(size, WORDS[kind].unit);

/** A predicate as it is read. */
export const inWords = (predicate: string): string => predicate.replaceAll("_", " ");

/** Which are right. Throws ApiError. */
export const sendAnswers = (kind: Kind, id: string, answers: readonly { question: number; answer?: string; known?: boolean }[]): Promise<StudyResult> =>
  thalweg.request(`${addressOf(kind, id)}/results`, { method: "POST", json: { answers } });
