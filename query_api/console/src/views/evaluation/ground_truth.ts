/** Requests for made questions, and what people say of them. */

import type { GroundTruthPage, GroundTruthQuestion, QuestionJudgement } from "../../client/thalweg.ts";
import { segment } from "../../client/requests.ts";
import { thalweg } from "../../lib/thalweg.ts";

export const PATH = "v1/ground-truth";
export type Judgement = GroundTruthQuestion["judgement"];
export const JUDGEMENTS: readonly Judgement[] = ["open", "confirmed", "rejected"];

/** As it is now. Throws ApiError. */
export const judge = ({ id }: GroundTruthQuestion, said: QuestionJudgement): Promise<GroundTruthQuestion> =>
  thalweg.request(`${PATH}/${segment(id)}`, { method: "PUT", json: said });

/** All that are confirmed about a collection, with their corrections. Throws ApiError. */
export async function confirmed(collection: string, signal: AbortSignal): Promise<GroundTruthQuestion[]> {
  const found: GroundTruthQuestion[] = [];
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const query = { collection, judgement: "confirmed", limit: 200, cursor };
    const page: GroundTruthPage = await thalweg.request(PATH, { query, signal });
    found.push(...page.questions);
    cursor = page.next_cursor;
  }
  return found;
}
