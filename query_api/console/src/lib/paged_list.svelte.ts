/** A list of a route that comes in pages: its items so far, the cursor of what follows, and what it failed with. While
 *  the service is away or has not computed it yet (503), it asks again by itself. */

import { untrack } from "svelte";

import { asApiError, isAbort, request, type ApiError } from "./api.ts";
import type { Parameters } from "./query.ts";

type Page = Record<string, unknown> & { next_cursor: string | null; total?: number };

const RETRY_SECONDS = 5;

export class PagedList<Item> {
  items = $state.raw<readonly Item[]>([]);
  cursor = $state<string | null>(null);
  /** How many there are on all pages; null where the route does not say. */
  total = $state<number | null>(null);
  loading = $state(false);
  /** Whether a first page has come. */
  loaded = $state(false);
  error = $state.raw<ApiError | null>(null);
  #path: string;
  #key: string;
  #query: Parameters = {};
  #controller: AbortController | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** `key` is the member of the answer that holds the items. */
  constructor(path: string, key: string) {
    this.#path = path;
    this.#key = key;
  }

  /** Asks for the first page in place of what was asked before, whose items stay until the answer, unless `fresh`: they
   *  are of something else. Returns a function that gives up, so an effect can return it. */
  load(query: Parameters, { waitMs = 0, fresh = false } = {}): () => void {
    return untrack(() => {
      this.#query = query;
      if (fresh) this.#forget();
      const controller = this.#begin();
      if (waitMs > 0) this.#timer = setTimeout(() => void this.#fetch(null, controller), waitMs);
      else void this.#fetch(null, controller);
      return () => this.stop();
    });
  }

  /** The next page, if there is one and none is on its way. */
  async more(): Promise<void> {
    if (this.cursor !== null && !this.loading) await this.#fetch(this.cursor, this.#begin());
  }

  /** What failed once more. */
  async again(): Promise<void> {
    await this.#fetch(this.loaded ? this.cursor : null, this.#begin());
  }

  /** Takes an item out that is gone, without asking for the list again. */
  remove(item: Item): void {
    const left = this.items.filter((each) => each !== item);
    if (left.length === this.items.length) return;
    this.items = left;
    if (this.total !== null) this.total -= 1;
  }

  stop(): void {
    this.#controller?.abort();
    this.#controller = null;
    clearTimeout(this.#timer);
    this.loading = false;
  }

  #begin(): AbortController {
    this.stop();
    this.loading = true;
    return (this.#controller = new AbortController());
  }

  #forget(): void {
    this.items = [];
    this.cursor = this.total = this.error = null;
    this.loaded = false;
  }

  async #fetch(cursor: string | null, controller: AbortController): Promise<void> {
    try {
      const page = await request<Page>(this.#path, { query: { ...this.#query, cursor }, signal: controller.signal });
      if (controller.signal.aborted) return;
      const found = page[this.#key] as Item[];
      this.items = cursor === null ? found : [...this.items, ...found];
      this.cursor = page.next_cursor;
      this.total = page.total ?? null;
      this.loaded = true;
      this.error = null;
    } catch (failure) {
      if (isAbort(failure) || controller.signal.aborted) return;
      this.error = asApiError(failure);
      if (this.error.passes) {
        this.#timer = setTimeout(() => void this.again(), (this.error.retryAfterSeconds ?? RETRY_SECONDS) * 1000);
      }
    }
    if (this.#controller === controller) this.loading = false;
  }
}
