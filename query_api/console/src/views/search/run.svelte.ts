/** One search and what has come of it so far: its frames, folded into a state that the view shows. */

import { type ApiError, asApiError, type Connection, type Done, type Hit, isAbort, type Meta, type SearchFrame, type SearchRequest, type Stage } from "../../client/thalweg.ts";
import { service } from "../../lib/service.svelte.ts";
import { thalweg } from "../../lib/thalweg.ts";
import { NO_ANSWER, withFrame, type AnswerSoFar } from "../../lib/answer.ts";
import { formulaOf } from "./formula.ts";
import type { Search } from "./parameters.ts";

/** A hit, the retrieval it came with (each page of a search is one), and how its score came about. */
export type FoundHit = Hit & { retrieval_id: string; formula: string };

/** All that has come of a search, to be shown again without asking again. */
export interface Found {
  search: Search;
  meta: Meta;
  stages: Stage[];
  hits: FoundHit[];
  answer: AnswerSoFar;
  done: Done;
}

export class SearchRun {
  search = $state.raw<Search | null>(null);
  meta = $state.raw<Meta | null>(null);
  stages = $state.raw<Stage[]>([]);
  hits = $state.raw<FoundHit[]>([]);
  answer = $state.raw<AnswerSoFar>(NO_ANSWER);
  done = $state.raw<Done | null>(null);
  error = $state.raw<ApiError | null>(null);
  running = $state(false);
  /** Set while the connection is down. */
  dropped = $state.raw<Extract<Connection, { state: "dropped" }> | null>(null);
  resumed = $state(0);
  /** Why all of it started again, where a resumed stream was gone. */
  reset = $state<string | null>(null);
  #controller: AbortController | null = null;

  /** Replaces the search before; what that has found is shown until the first frame of this one. */
  async start(search: Search): Promise<void> {
    this.search = search;
    this.done = null;
    this.resumed = 0;
    this.reset = null;
    await this.#follow(search, true);
  }

  /** The next page, from the same snapshot; the answer is of the first. */
  async more(): Promise<void> {
    if (this.search && this.done?.next_cursor && !this.running) {
      await this.#follow({ ...this.search, answer: false, cursor: this.done.next_cursor }, false);
    }
  }

  stop(): void {
    this.#controller?.abort();
    this.#controller = null;
    this.running = false;
    this.dropped = null;
  }

  /** Null where it has not come to its end. */
  get found(): Found | null {
    const { search, meta, stages, hits, answer, done } = this;
    return search && meta && done && !this.running && !this.error ? { search, meta, stages, hits, answer, done } : null;
  }

  /** Shows it again. */
  restore(found: Found): void {
    this.clear();
    Object.assign(this, found);
  }

  clear(): void {
    this.stop();
    this.search = null;
    this.error = null;
    this.resumed = 0;
    this.reset = null;
    this.#forget();
  }

  #forget(): void {
    this.meta = this.done = null;
    this.stages = [];
    this.hits = [];
    this.answer = NO_ANSWER;
  }

  async #follow(body: Search & { cursor?: string }, first: boolean): Promise<void> {
    this.stop();
    const controller = (this.#controller = new AbortController());
    const { signal } = controller;
    this.error = null;
    this.running = true;
    try {
      // as the address has it: what is no such choice the service refuses
      const frames = thalweg.search(body as SearchRequest, {
        signal,
        onConnection: (connection) => this.#connection(connection),
      });
      for await (const frame of frames) {
        if (signal.aborted) return;
        this.#apply(frame, first);
      }
    } catch (failure) {
      if (signal.aborted || isAbort(failure)) return;
      this.error = asApiError(failure);
      const began = this.error.status === 200;
      if (first && !began && (this.meta?.query !== body.q || !this.error.passes)) this.#forget();
      if (this.error.passes) service.check();
    } finally {
      if (this.#controller === controller) this.stop();
    }
  }

  #apply(frame: SearchFrame, first: boolean): void {
    this.answer = withFrame(this.answer, frame);
    switch (frame.event) {
      case "meta":
        if (first) this.#forget();
        this.meta = frame.data;
        this.stages = [];
        break;
      case "stage":
        this.stages = [...this.stages, frame.data];
        break;
      case "hit":
        this.hits = [...this.hits, this.#found(frame.data)];
        break;
      case "done":
        this.done = frame.data;
        break;
      case "reset":
        this.reset = frame.data.reason;
        this.#forget();
    }
  }

  #found(hit: Hit): FoundHit {
    const { retrieval_id = "", mode = "hybrid" } = this.meta ?? {};
    return { ...hit, retrieval_id, formula: formulaOf(hit, mode, this.search ?? {}) };
  }

  #connection(connection: Connection): void {
    if (connection.state === "dropped") this.dropped = connection;
    else {
      this.dropped = null;
      this.resumed += 1;
    }
  }
}
