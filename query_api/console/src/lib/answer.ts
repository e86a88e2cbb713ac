/** An answer: its frames, folded into what is shown. */

import type { Answer, AnswerDelta, Citation, Evidence, Parameters, Research, SearchFrame } from "../client/thalweg.ts";

export interface Piece {
  /** Above it, where what comes answers something else than what is before. */
  heading?: string;
  /** Of the document that it and the next pieces are from; null where the piece before has said it. */
  title: string | null;
  text: string;
  sources: Citation[];
}

export interface AnswerSoFar {
  citations: readonly Citation[];
  pieces: readonly Piece[];
  /** As the search's last frame has it: whether it is refused, and why. */
  whole: Answer | null;
}

export const NO_ANSWER: AnswerSoFar = { citations: [], pieces: [], whole: null };

/** With one more frame of its search. The last frames of further pages have no answer, and leave it as it is. */
export function withFrame(answer: AnswerSoFar, { event, data }: SearchFrame): AnswerSoFar {
  switch (event) {
    case "answer.citation":
      return { ...answer, citations: [...answer.citations, data] };
    case "answer.delta":
      return { ...answer, pieces: [...answer.pieces, pieceOf(data, answer.citations)] };
    case "done":
      return { ...answer, whole: data.answer ?? answer.whole };
    default:
      return answer;
  }
}

/** One that is there as a whole: its lines are its pieces. */
export function answerOf(whole: Answer): AnswerSoFar {
  const { citations } = whole;
  const lines = whole.text.split("\n").filter((line) => line.trim() !== "");
  const pieces = lines.map((text, index) => {
    const named = /(?: \[\d+\])+$/.exec(text.trimEnd())?.[0].match(/\d+/g) ?? [];
    return pieceOf({ index, text, citations: named.map(Number) }, citations);
  });
  return { citations, pieces, whole };
}

/** The note of a research: its sentences under what was searched for. */
export function answerOfNote({ groups, citations }: Research): AnswerSoFar {
  const pieces = groups.flatMap(({ heading, citations: numbers }) => {
    const own = citations.filter(({ number }) => numbers.includes(number));
    return own.map((source, at): Piece => {
      const title = at > 0 && titleOf(own[at - 1]!) === titleOf(source) ? null : titleOf(source);
      return { ...(at === 0 && groups.length > 1 ? { heading } : {}), title, text: source.text, sources: [source] };
    });
  });
  return { citations, pieces, whole: null };
}

/** Its text without the title before it and the numbers behind it, which are shown as links. A number in brackets that
 *  the document itself has stays. */
function pieceOf(delta: AnswerDelta, citations: readonly Citation[]): Piece {
  const sources = citations.filter(({ number }) => delta.citations.includes(number));
  let text = delta.text.trim();
  for (const { number } of sources.toReversed()) {
    if (text.endsWith(` [${number}]`)) text = text.slice(0, -` [${number}]`.length);
  }
  const heading = `*${sources[0]?.title}*: `;
  if (sources.length === 0 || !text.startsWith(heading)) return { title: null, text, sources };
  return { title: titleOf(sources[0]!), text: text.slice(heading.length), sources };
}

export const titleOf = ({ title, document_id }: Citation): string => title || document_id;

/** Where a source is in its document. */
export function placeOf({ title, section, page }: Citation): string {
  const headings = section.filter((heading) => heading !== title).join(" › ");
  return [headings, page === null ? "" : `page ${page}`].filter((part) => part !== "").join(", ");
}

type Place = Pick<Citation, "document_id" | "collection" | "start" | "end"> & { passage_id?: string };

/** Of its document, opened at the very sentence. */
export const sentenceOf = ({ document_id, collection, passage_id, start, end }: Place): Parameters => ({
  id: document_id,
  in: collection,
  passage: passage_id,
  start,
  end,
});

/** Of the document of a sentence whose place is not known, opened at the first place that has it. */
export const evidenceOf = ({ document_id, collection, sentence }: Pick<Evidence, "document_id" | "collection" | "sentence">): Parameters => ({
  id: document_id,
  in: collection,
  quote: sentence,
});
