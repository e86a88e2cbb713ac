/** How the score of a hit came about, in a line; and the factors that explain it, which are in no score. */

import type { Factors, Hit } from "../../client/thalweg.ts";
import type { Search } from "./parameters.ts";

const RRF_K = 60;
const WEIGHTS = { vector: 0.7, keyword: 0.3, graph: 1 } as const;

/** Each factor's weight in `weighted`, and what it is. */
export const FACTORS: readonly (readonly [name: Exclude<keyof Factors, "weighted">, weight: number, meaning: string])[] = [
  ["semantic", 0.25, "how near the meaning is: the cosine"],
  ["exact", 0.2, "share of the question's words, or of the fields asked for"],
  ["recency", 0.15, "halves with each year"],
  ["centrality", 0.15, "how many other passages name or link to it"],
  ["relationship", 0.1, "how strongly the graph leads to it"],
  ["entity", 0.1, "share of the names in the question"],
  ["source", 0.05, "share of its origin that is known"],
];

type Scored = Pick<Hit, "score" | "scores" | "ranks">;

/** The formula of the hit's score with its own numbers, as far as the answer holds them. */
export function formulaOf({ score, scores, ranks }: Scored, mode: string, search: Search): string {
  const total = score.toFixed(4);
  const number = (channel: string) => scores[channel]?.toFixed(3);
  const gated = "graph" in scores ? ` + gate · graph score ${number("graph")}` : "";
  if (mode === "graph_rerank") return `${total} = cosine ${number("vector")}${gated}`;
  if (mode !== "hybrid") return `${total} = the ${mode} channel's own score`;
  const fields = "structured" in scores ? ` + 4 · conclusiveness · fields ${number("structured")}` : "";
  if (search.fusion === "rrf") {
    const found = Object.entries(ranks).filter(([channel]) => channel in WEIGHTS);
    const terms = found.map(([channel, rank]) => `1/(${RRF_K} + ${rank}) ${channel}`);
    return `${total} = (${terms.join(" + ")}) / that of the best${fields}`;
  }
  if (search.fusion === "weighted") {
    const used = Object.entries(WEIGHTS).filter(([channel]) => channel in scores);
    const terms = used.map(([channel, usual]) => {
      const weight = search[`${channel as keyof typeof WEIGHTS}_weight`] ?? usual;
      return `${weight} · ${channel === "graph" ? "gate · " : ""}min-max(${channel} ${number(channel)})`;
    });
    return `${total} = ${terms.join(" + ")}${fields}`;
  }
  const words = [["cosine", "vector"], ["words", "keyword"]].filter(([, channel]) => channel! in scores);
  const text = words.map(([name, channel]) => `${name} ${number(channel!)}`).join(", ");
  return `${total} = text score${text && ` (${text})`}${gated}${fields}`;
}
