/** What became of the hits of a retrieval: those then beside those of the same search now. */

import type { RetrievedHitShown } from "../../client/thalweg.ts";

export type Ranked = Pick<RetrievedHitShown, "rank" | "chunk_id" | "passage_id" | "document_id" | "collection">;

export type Change = "same" | "up" | "down" | "new" | "gone";

export interface Mark {
  change: Change;
  /** The rank on the other side; null where it is not there. */
  other: number | null;
}

/** What a search gave one hit for: two hits are the same where they are of the same such thing. */
function keyOf(group: unknown): (hit: Ranked) => string {
  if (group === "chunk") return ({ chunk_id }) => chunk_id;
  if (group === "document") return ({ collection, document_id }) => `${collection}/${document_id}`;
  return ({ passage_id }) => passage_id;
}

/** A mark for each hit of either side, in its order. `up` is towards the first rank, from then to now. */
export function compared(
  then: readonly Ranked[],
  now: readonly Ranked[],
  group: unknown,
): { then: Mark[]; now: Mark[] } {
  const key = keyOf(group);
  const ranks = (hits: readonly Ranked[]) => new Map(hits.map((hit) => [key(hit), hit.rank]));
  const before = ranks(then);
  const after = ranks(now);
  const moved = (from: number, to: number): Change => (from === to ? "same" : to < from ? "up" : "down");
  return {
    then: then.map((hit) => {
      const rank = after.get(key(hit));
      return rank === undefined ? { change: "gone", other: null } : { change: moved(hit.rank, rank), other: rank };
    }),
    now: now.map((hit) => {
      const rank = before.get(key(hit));
      return rank === undefined ? { change: "new", other: null } : { change: moved(rank, hit.rank), other: rank };
    }),
  };
}

/** How many are as then, moved, came and went, in words. */
export function summary({ then, now }: { then: readonly Mark[]; now: readonly Mark[] }): string {
  const many = (marks: readonly Mark[], ...changes: Change[]) => marks.filter(({ change }) => changes.includes(change)).length;
  const [same, moved, came, went] = [many(now, "same"), many(now, "up", "down"), many(now, "new"), many(then, "gone")];
  if (moved + came + went === 0) return "The same search finds the same now.";
  const parts: [number, string][] = [[same, "as then"], [moved, "moved"], [came, "new"], [went, "gone"]];
  return `Of the same search now: ${parts.filter(([held]) => held > 0).map(([held, word]) => `${held} ${word}`).join(", ")}.`;
}
