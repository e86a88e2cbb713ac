/** How a search came to a hit: the nodes and edges of its path in the graph that is shown, and the path in words. */

import type { AbstractGraph } from "graphology-types";

import type { HitStep, RetrievedHit } from "../../client/thalweg.ts";
import type { EdgeKind, GraphEdge } from "./api.ts";

/** The chunks a path goes by: those that hold its evidence, and the hit's own. */
export const chunksOf = (hit: RetrievedHit): string[] => [
  ...new Set([...hit.path.map((step) => step.chunk_id), hit.chunk_id].filter((id) => id != null)),
];

/** The documents and entities that its steps join. */
export const nodesOf = (hit: RetrievedHit): string[] => [
  ...new Set(hit.path.flatMap((step) => [step.from_node, step.to_node]).filter((id) => id != null)),
];

const BETWEEN_CHUNKS: readonly EdgeKind[] = ["next_chunk", "similar_to", "related_to"];
const WITHIN_DOCUMENT = ["next_to", "similar_text"];
const LONGEST = 3; // edges of the graph for half a step: document, its entity, the chunk that names it

/** The nodes and edges of a hit's path, and the steps that no edge of the graph represents, as edges of their own. A step
 *  goes by its evidence: a document mentions an entity in one of its chunks. */
export function traced(
  graph: AbstractGraph<object, { kind: EdgeKind }>,
  hit: RetrievedHit,
): { marked: Set<string>; further: GraphEdge[] } {
  const marked = new Set<string>();
  const further: GraphEdge[] = [];
  const join = (ends: readonly string[], betweenChunks: boolean): boolean => {
    let whole = true;
    ends.forEach((end, index) => {
      marked.add(end);
      const before = ends[index - 1];
      if (before === undefined || before === end) return;
      const way = shortest(graph, before, end, betweenChunks);
      if (way === null) whole = false;
      else way.forEach((each) => marked.add(each));
    });
    return whole;
  };
  const here = (id: string | null | undefined): id is string => id != null && graph.hasNode(id);
  for (const step of hit.path) {
    const ends = [step.from_node, step.by === "words" ? null : step.chunk_id, step.to_node].filter(here);
    const joined = step.by !== "words" && join(ends, WITHIN_DOCUMENT.includes(step.edge));
    if (joined || !here(step.from_node) || !here(step.to_node)) continue;
    further.push({ from: step.from_node, to: step.to_node, kind: "step", weight: 1, label: step.edge });
    marked.add(step.from_node).add(step.to_node);
  }
  join([hit.path.at(-1)?.to_node, hit.chunk_id].filter(here), false);
  return { marked, further };
}

/** The nodes and edges of a shortest way, whatever way the edges lead; null where there is none of `LONGEST` edges. */
function shortest(
  graph: AbstractGraph<object, { kind: EdgeKind }>,
  from: string,
  to: string,
  betweenChunks: boolean,
): string[] | null {
  const before = new Map<string, [node: string, edge: string] | null>([[from, null]]);
  let frontier = [from];
  for (let length = 0; length < LONGEST && !before.has(to); length += 1) {
    const next: string[] = [];
    for (const node of frontier) {
      graph.forEachEdge(node, (edge, { kind }, source, target) => {
        const other = source === node ? target : source;
        if (before.has(other) || (!betweenChunks && BETWEEN_CHUNKS.includes(kind))) return;
        before.set(other, [node, edge]);
        next.push(other);
      });
    }
    frontier = next;
  }
  if (!before.has(to)) return null;
  const way = [to];
  for (let back = before.get(to); back; back = before.get(back[0])) way.push(back[1], back[0]);
  return way;
}

/** Each step in words; `{from}` and `{to}` are replaced by names. What is not here is a predicate of a statement. */
const WORDS: Record<string, string> = {
  mentions: "{from} mentions {to}",
  mentioned_in: "{from} is mentioned in {to}",
  mentioned_by: "{from} is mentioned by {to}",
  links_to: "{from} links to {to}",
  linked_from: "{from} is linked from {to}",
  title_of: "{from} is the title of {to}",
  continues: "words that the question still asks for lead on to {to}, without a link",
  next_to: "beside it is a passage of the same document",
  similar_text: "another passage of {to} is much like it",
};

/** The path as a sentence, such as `The question names “A”; “A” replaces “B”.` */
export function inWords(path: readonly HitStep[]): string {
  const said = path.map((step) => {
    if (step.by === "question") return `the question ${step.edge === "names" ? "names" : "fits"} ${quoted(step.to)}`;
    const fact = step.inverse ? "{to} {edge} {from}" : "{from} {edge} {to}";
    const parts: Record<string, string> = {
      "{from}": quoted(step.from),
      "{to}": quoted(step.to),
      "{edge}": step.edge.replaceAll("_", " "),
    };
    return (WORDS[step.edge] ?? fact).replace(/\{from\}|\{to\}|\{edge\}/g, (part) => parts[part]!);
  });
  const sentence = said.join("; ");
  return sentence && `${sentence[0]!.toUpperCase()}${sentence.slice(1)}.`;
}

/** Why a hit without a path was found: `vector and keyword`. */
export const channelsOf = (hit: RetrievedHit): string => Object.keys(hit.ranks).join(" and ");

const quoted = (name: string): string => `“${name}”`;
