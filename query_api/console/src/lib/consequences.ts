/** What each action that takes something away asks first: what is lost, in numbers where they are known, what stays, and
 *  how it is undone. */

import { bytes, count, plural } from "./format.ts";
import type { BuildProgress, GenerationComparison, GenerationShown } from "../client/thalweg.ts";

export interface Question {
  title: string;
  consequences: string[];
  /** On the button that does it. */
  act: string;
  /** On the button that does not, where "Cancel" could be read as the act. */
  keep?: string;
  /** Nothing is lost by it. */
  harmless?: true;
}

type GenerationFacts = Pick<GenerationShown, "name" | "state" | "bytes"> & {
  progress: Pick<BuildProgress, "records" | "of_records"> | null;
  comparison: Pick<GenerationComparison, "missing_count" | "unexpected_count"> | null;
};

export const isBeingBuilt = ({ state }: Pick<GenerationFacts, "state">): boolean => state === "ordered" || state === "building";

export function rebuilding(live: GenerationFacts | undefined, documents: number | undefined): Question {
  const size = live?.bytes ? `, about ${bytes(live.bytes)} as the live ones have` : "";
  return {
    title: "Rebuild the stores and switch to them?",
    consequences: [
      `${documents === undefined ? "Every document" : documents === 1 ? "The one document" : `All ${count(documents)} documents`} will be read and indexed again from the log. That takes processor time and room on the disk${size}.`,
      `Nothing is lost. Searches go on in ${live?.name ?? "the live stores"} until the new ones are complete; then these are kept, to switch back to. Until then the rebuild can be cancelled.`,
    ],
    act: "Rebuild and switch",
    harmless: true,
  };
}

export const deletingConversation = (title: string): Question => ({
  title: `Delete “${title.slice(0, 120)}”?`,
  consequences: ["Its questions and answers are lost. The documents stay as they are.", "It does not come back."],
  act: "Delete",
});

export function switching(to: GenerationFacts, live: string): Question {
  const { comparison } = to;
  return {
    title: `Switch to ${to.name}?`,
    consequences: [
      `Searches go from ${live} to ${to.name}${to.state !== "ready" ? ", once that has been brought up to date from the log" : ""}.`,
      ...(comparison && comparison.missing_count + comparison.unexpected_count > 0
        ? [`When it was compared, ${plural(comparison.missing_count, "document")} were missing in it and ${count(comparison.unexpected_count)} unexpected.`]
        : []),
      `Nothing is lost: ${live} is kept, and you can switch back to it.`,
    ],
    act: `Switch to ${to.name}`,
    harmless: true,
  };
}

export function dropping(generation: GenerationFacts): Question {
  const { name, progress } = generation;
  const size = generation.bytes === null ? "" : `, ${bytes(generation.bytes)},`;
  if (isBeingBuilt(generation)) {
    const done = progress ? ` after ${count(progress.records)} of ${count(progress.of_records)} records` : "";
    return {
      title: `Cancel the rebuild ${name}?`,
      consequences: [
        `It ends${done}. What it has made${size} is deleted; another rebuild begins from the start.`,
        "The live stores and the log stay as they are.",
      ],
      act: "Cancel the rebuild",
      keep: "Go on building",
    };
  }
  return {
    title: `Drop ${name}?`,
    consequences: [
      `Its stores${size} are deleted. This cannot be undone, and nobody can switch ${generation.state === "failed" ? "" : "back "}to it any more.`,
      "The documents stay: they are in the log and in the live stores. A rebuild makes stores from the log again.",
    ],
    act: "Drop it",
    keep: "Keep it",
  };
}

export function deletingDocument(document: { id: string; title: string; collection: string; chunks: number }): Question {
  return {
    title: `Delete ${document.title || document.id}?`,
    consequences: [
      `The document ${document.id} of ${document.collection} with its ${plural(document.chunks, "chunk")} goes from searches and from the graph.`,
      "Undo stays on this page until it is left. It brings back the file if this page published it, else its text, title and fields without markup, links and version.",
    ],
    act: "Delete it",
    keep: "Keep it",
  };
}

export function deletingNode(node: { label: string; text: string }, edges: number | null): Question {
  return {
    title: `Delete the node ${node.label}?`,
    consequences: [
      node.text ? `Searches no longer find its text of ${plural(node.text.length, "character")}.` : "It has no text that searches find.",
      edges === null || edges > 0
        ? `${edges === null ? "Edges" : plural(edges, "edge")} that people made at it stay, and are not drawn until there is a node of its id again.`
        : "No edge that people made ends at it.",
      "You can undo it on this page until it is left.",
    ],
    act: "Delete the node",
    keep: "Keep it",
  };
}

export function deletingEdge(edge: { source: string; predicate: string; target: string }): Question {
  return {
    title: "Delete this edge?",
    consequences: [
      `${edge.source} ${edge.predicate} ${edge.target}: searches no longer follow it. Both ends stay.`,
      "You can undo it on this page until it is left.",
    ],
    act: "Delete the edge",
    keep: "Keep it",
  };
}

export function merging(one: string, other: string): Question {
  return {
    title: `Merge ${one} and ${other}?`,
    consequences: [
      "The two become one entity in searches, in the graph and in lists, with the mentions of both.",
      "No document changes. You can undo it here and, at any time, in the decided reviews.",
    ],
    act: "Merge the two",
    keep: "Keep both",
  };
}

export function redriving(open: number | null, filtered: boolean): Question {
  const records = open === null ? "Every record that is not indexed" : plural(open, "record");
  return {
    title: filtered ? "Send these dead letters again?" : "Send all dead letters again?",
    consequences: [
      `${records} ${open === null || open === 1 ? "is" : "are"} put in the log again; what was replaced or deleted since is left out.`,
      "What is not repaired fails again, as a new dead letter. Records that were sent cannot be called back.",
    ],
    act: "Send them again",
  };
}

export function resetting(title: string, collection: string, chosen: Record<string, unknown>): Question {
  const values = Object.entries(chosen).filter(([, value]) => value !== null);
  return {
    title: `Take back the ${title.toLowerCase()} of ${collection}?`,
    consequences: [
      `${plural(values.length, "chosen setting")} will be the default again: ${values.map(([name, value]) => `${name} ${String(value)}`).join(", ")}.`,
      "Documents that are indexed stay as they are. You can undo it on this page until it is left.",
    ],
    act: "Back to the default",
    keep: "Keep them",
  };
}
