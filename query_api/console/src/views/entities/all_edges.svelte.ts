/** All edges of a collection's graph, read from its export piece by piece, as far as they are wanted. */

import { type ApiError, asApiError, isAbort } from "../../client/thalweg.ts";
import { thalweg } from "../../lib/thalweg.ts";
import { jsonLines } from "../../lib/lines.ts";

export interface EdgeRow {
  key: string;
  source: string;
  target: string;
  from: string;
  to: string;
  kind: string;
  label: string;
  weight: number | null;
  count: number | null;
}

export type ExportLine =
  | { graph: object }
  | { node: string; label?: string }
  | { edge: [source: string, target: string]; kind: string; label?: string; weight?: number; count?: number };

export const PAGE = 200;
const MOST = 50_000; // rows that a page keeps

/** The edges of an export, with the names of their ends: nodes come before edges. */
export async function* edgeRows(lines: AsyncIterable<ExportLine>): AsyncGenerator<EdgeRow> {
  const names = new Map<string, string>();
  let number = 0;
  for await (const line of lines) {
    if ("node" in line) names.set(line.node, line.label ?? line.node);
    if ("edge" in line) {
      const [source, target] = line.edge;
      const { kind, label = "", weight = null, count = null } = line;
      number += 1;
      yield { key: String(number), source, target, from: names.get(source) ?? source, to: names.get(target) ?? target, kind, label, weight, count };
    }
  }
}

export class AllEdges {
  /** Those read so far. */
  rows = $state.raw<readonly EdgeRow[]>([]);
  complete = $state(false);
  loading = $state(false);
  error = $state.raw<ApiError | null>(null);
  #lines: AsyncGenerator<EdgeRow> | null = null;
  #controller = new AbortController();

  /** Begins again. Returns a function that gives up, so an effect can return it. */
  load(collection: string): () => void {
    this.#controller.abort();
    const controller = (this.#controller = new AbortController());
    this.rows = [];
    this.complete = false;
    this.#lines = read(collection, controller.signal);
    return () => controller.abort();
  }

  /** Reads until so many rows fit, or all are read. */
  async more(wanted: number, fits: (row: EdgeRow) => boolean): Promise<void> {
    const { signal } = this.#controller;
    const lines = this.#lines;
    if (lines === null || this.loading || this.complete) return;
    this.loading = true;
    this.error = null;
    const rows = [...this.rows];
    let found = rows.filter(fits).length;
    try {
      while (found < wanted && rows.length < MOST) {
        const { done, value } = await lines.next();
        if (signal.aborted) return;
        if (done) {
          this.complete = true;
          break;
        }
        rows.push(value);
        if (fits(value)) found += 1;
      }
      this.rows = rows;
      if (rows.length >= MOST) this.complete = true;
    } catch (failure) {
      if (!signal.aborted && !isAbort(failure)) this.error = asApiError(failure);
    } finally {
      this.loading = false;
    }
  }
}

async function* read(collection: string, signal: AbortSignal): AsyncGenerator<EdgeRow> {
  const response = await thalweg.send("v1/graph/export", { query: { collection, format: "jsonl" }, headers: { Accept: "application/x-ndjson" }, signal });
  if (response.body !== null) yield* edgeRows(jsonLines<ExportLine>(response.body));
}
