/** Marks in texts. The service counts Unicode characters; JavaScript counts UTF-16 units. */

import type { TextSpan } from "../client/thalweg.ts";

export interface Piece {
  text: string;
  marked: boolean;
  /** In the sentence that answers the question. */
  answer: boolean;
}

/** Where each Unicode character of a text begins in UTF-16; null where the two counts are the same. */
function unitsOf(text: string): number[] | null {
  if (!/[\ud800-\udbff]/.test(text)) return null;
  const units: number[] = [];
  let unit = 0;
  for (const character of text) {
    units.push(unit);
    unit += character.length;
  }
  units.push(unit);
  return units;
}

/** The part of a text between two offsets in Unicode characters. */
export function slice(text: string, start: number, end?: number): string {
  const units = unitsOf(text);
  if (units === null) return text.slice(start, end);
  return text.slice(units[start] ?? text.length, end === undefined ? undefined : (units[end] ?? text.length));
}

/** The length in Unicode characters. */
export const characters = (text: string): number => (unitsOf(text)?.length ?? text.length + 1) - 1;

/** Where a text has a sentence, in Unicode characters, whatever blanks and line ends are between its words. */
export function placeIn(text: string, sentence: string): TextSpan | null {
  const words = sentence.trim().split(/\s+/u).map((word) => word.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&"));
  const found = words[0] === "" ? null : new RegExp(words.join("\\s+"), "u").exec(text);
  if (found === null) return null;
  const start = characters(text.slice(0, found.index));
  return { start, end: start + characters(found[0]) };
}

/** A text cut at the borders of its marks. Spans count Unicode characters, may overlap, and are taken as far as they are
 *  within the text. */
export function pieces(text: string, marks: readonly TextSpan[], answer: TextSpan | null = null): Piece[] {
  const units = unitsOf(text);
  const unit = (at: number) => (units === null ? at : (units[Math.max(0, at)] ?? text.length));
  const inUnits = (span: TextSpan): TextSpan => ({ start: unit(span.start), end: unit(span.end) });
  const spans = marks.map(inUnits);
  const sentence = answer && inUnits(answer);
  const borders = new Set([0, text.length]);
  for (const { start, end } of sentence ? [...spans, sentence] : spans) {
    for (const border of [start, end]) if (border > 0 && border < text.length) borders.add(border);
  }
  const ordered = [...borders].sort((a, b) => a - b);
  const cut: Piece[] = [];
  for (const [index, start] of ordered.slice(0, -1).entries()) {
    const end = ordered[index + 1]!;
    cut.push({
      text: text.slice(start, end),
      marked: spans.some((span) => span.start <= start && end <= span.end),
      answer: sentence !== null && sentence.start <= start && end <= sentence.end,
    });
  }
  return cut;
}

const CUT_BEFORE = 80; // characters, of an excerpt

/** Where a short showing of a text begins, in Unicode characters: at its answer, where that is not near the beginning. */
export const excerptStart = (answer: TextSpan | null): number => (answer && answer.start > CUT_BEFORE ? answer.start : 0);

/** A value of metadata in a line. */
export function shown(value: unknown): string {
  if (Array.isArray(value)) return value.map(shown).join(", ");
  return value !== null && typeof value === "object" ? JSON.stringify(value) : String(value);
}
