/** A list of a route that comes in pages: its items so far, the cursor of what follows, and what it failed with. While
 *  the service is away or has not computed it yet (503), it asks again automatically. */

import { untrack } from "svelte";

import { type ApiError, asApiError, isAbort, type Parameters } from "../client/thalweg.ts";
import { thalweg } from "./thalweg.ts";

interface AnyPage {
  next_cursor: string | null;
  total?: number;
}

const RETRY_SECONDS = 5;

export class PagedList<Item, Page extends AnyPage = AnyPage> {
  items = $state.raw<readonly Item[]>([]);
  cursor = $state<string | null>(null);
  /** How many there are on all pages; null where the route does not say. */
  total = $state<number | null>(null);
  /** The page that came last; null before the first. */
  page = $state.raw<Page | null>(null);
  loading = $state(false);
  error = $state.raw<ApiError | null>(null);
  #path: string;
  #key: string;
  #query: Parameters = {};
  /** The cursor of the page that is on its way, or failed. */
  #asked: string | null = null;
  #controller: AbortController | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** `key` is the member of the answer that holds the items. */
  constructor(path: string, key: string) {
    this.#path = path;
    this.#key = key;
  }

  /** Asks for the first page, or that of the query's own cursor, in place of what was asked before, whose items stay until
   *  the answer, unless `fresh`: they are of something else. Returns a function that gives up, so an effect can return it. */
  load(query: Parameters, { waitMs = 0, fresh = false } = {}): () => void {
    return untrack(() => {
      this.#query = query;
      if (fresh) this.#forget();
      const controller = this.#begin(null);
      if (waitMs > 0) this.#timer = setTimeout(() => void this.#fetch(null, controller), waitMs);
      else void this.#fetch(null, controller);
      return () => this.stop();
    });
  }

  /** The next page, if there is one and none is on its way. */
  async more(): Promise<void> {
    if (this.cursor !== null && !this.loading) await this.#fetch(this.cursor, this.#begin(this.cursor));
  }

  /** Whether a first page has come. */
  get loaded(): boolean {
    return this.page !== null;
  }

  /** What failed once more. */
  async again(): Promise<void> {
    await this.#fetch(this.#asked, this.#begin(this.#asked));
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

  #begin(cursor: string | null): AbortController {
    this.stop();
    this.#asked = cursor;
    this.loading = true;
    return (this.#controller = new AbortController());
  }

  #forget(): void {
    this.items = [];
    this.cursor = this.total = this.page = this.error = null;
  }

  async #fetch(cursor: string | null, controller: AbortController): Promise<void> {
    try {
      const query = cursor === null ? this.#query : { ...this.#query, cursor };
      const page = await thalweg.request<Page>(this.#path, { query, signal: controller.signal });
      if (controller.signal.aborted) return;
      const found = page[this.#key as keyof Page] as Item[];
      this.items = cursor === null ? found : [...this.items, ...found];
      this.cursor = page.next_cursor;
      this.total = page.total ?? null;
      this.page = page;
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
