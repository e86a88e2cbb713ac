/** The report of an evaluation (`report.json`), as far as the console reads it. */

import type { EvaluationState } from "../../client/thalweg.ts";

export interface Interval {
  mean: number;
  low: number;
  high: number;
}

export interface Bin {
  low: number;
  high: number;
  hits: number;
  confidence: number;
  right: number;
}

export interface Calibration {
  hits: number;
  expected_error: number;
  bins: Bin[];
}

export interface Question {
  question_id: string;
  question: string;
  documents: string[];
  measures: Record<string, number>;
}

export interface Approach {
  name: string;
  about: string;
  measures: Record<string, Interval>;
  latencies: Record<string, { p50: number; p95: number }>;
  calibration: Calibration | null;
  first_hit_calibration: Calibration | null;
  questions: Question[];
}

export interface CollectionReport {
  name: string;
  questions: number;
  approaches: Approach[];
  confidence_fitted_to: string | null;
  comparisons: { measure: string; ours: string; theirs: string; difference: Interval; adjusted_p: number }[];
}

/** The service leaves open what is in a report. */
export type Evaluation = Omit<EvaluationState, "report"> & { report: { collections: CollectionReport[] } | null };

/** A judged document that the collection lacks, with ids that may be meant. */
export interface UnknownDocument {
  id: string;
  questions: string[];
  suggestions: string[];
}

/** The text of questions with one document's id put in place of another, wherever it is a whole id. */
export function withDocument(text: string, wrong: string, right: string): string {
  const lines = text.split("\n").map((line) => {
    if (line.trim().startsWith("{")) return line.replaceAll(JSON.stringify(wrong), JSON.stringify(right));
    const [question = "", ids, ...rest] = line.split("\t");
    if (ids === undefined) return line;
    const named = ids.split(",").map((id) => (id.trim() === wrong ? id.replace(wrong, right) : id));
    return [question, named.join(","), ...rest].join("\t");
  });
  return lines.join("\n");
}

/** A line of the calibration plot. */
export interface Series extends Calibration {
  name: string;
}

/** First hits and all hits apart; none of an approach without confidences. */
export function seriesOf({ first_hit_calibration, calibration }: Approach): Series[] {
  return Object.entries({ "first hits": first_hit_calibration, "all hits": calibration }).flatMap(([name, found]) =>
    found === null ? [] : [{ name, ...found }],
  );
}

/** What a measure means for an approach; 100 % is the best. */
export function meaningOf(measure: string): string {
  const [name = "", depth = ""] = measure.split("@");
  const first = `the first ${depth} hits`;
  const meanings: Record<string, string> = {
    nDCG: `How near the order of ${first} is to the best possible one; the first hits count most.`,
    R: `The share of a question's relevant documents that is among ${first}.`,
    P: `The share of ${first} that is relevant.`,
    AllGold: `The share of questions all of whose relevant documents are among ${first}.`,
    MRR: "One divided by the rank of the first relevant document, on average.",
    MAP: "Precision at the rank of each relevant document, on average.",
  };
  return meanings[name] ?? "";
}

export interface AskedQuestion {
  id: string;
  text: string;
  relevant: Record<string, number>;
  kind?: string;
}

/** Questions that somebody typed: a JSON object a line, or `question <tab> document id, document id`. Throws an Error
 *  that names the line. */
export function parseQuestions(text: string): AskedQuestion[] {
  const questions = text
    .split("\n")
    .map((line, index) => ({ line: line.trim(), number: index + 1 }))
    .filter(({ line }) => line !== "")
    .map(({ line, number }) => (line.startsWith("{") ? ofJson(line, number) : ofTabs(line, number)));
  if (questions.length === 0) throw new Error("Give at least one question.");
  return questions;
}

function ofJson(line: string, number: number): AskedQuestion {
  try {
    const { id = `q${number}`, text, relevant, kind } = JSON.parse(line) as Partial<AskedQuestion>;
    if (typeof text === "string" && relevant !== null && typeof relevant === "object") {
      return { id, text, relevant, ...(typeof kind === "string" ? { kind } : {}) };
    }
  } catch {
    // reported below
  }
  throw new Error(`Line ${number} is not a JSON object with "text" and "relevant": {"document id": 1}.`);
}

function ofTabs(line: string, number: number): AskedQuestion {
  const [text = "", ids = ""] = line.split("\t");
  const relevant = Object.fromEntries(
    ids
      .split(",")
      .map((id) => id.trim())
      .filter(Boolean)
      .map((id) => [id, 1]),
  );
  if (Object.keys(relevant).length === 0) {
    throw new Error(`Line ${number} names no document: write the question, a tab, and the ids of documents that answer it.`);
  }
  return { id: `q${number}`, text, relevant };
}
