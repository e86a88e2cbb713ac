/** The service's API key: asked for when a request is refused, kept for this tab only. */

const KEY = "thalweg.api-key";

class ApiKey {
  #key = sessionStorage.getItem(KEY);
  #answer: ((given: boolean) => void) | null = null;
  #asking: Promise<boolean> | null = null;

  /** Whether the page asks for the key now (`components/KeyDialog.svelte`). */
  asked = $state(false);
  /** Whether the key that was given has been refused. */
  refused = $state(false);

  /** What each request sends. */
  get current(): string | null {
    return this.#key;
  }

  /** Resolves once a key has been given, or to false if it was not. Requests that are refused together ask once.
   *  `sent` is the key of the refused request: was another given since, that one is to be tried first. */
  ask(sent: string | null): Promise<boolean> {
    if (sent !== this.#key) return Promise.resolve(true);
    this.refused = this.#key !== null;
    this.asked = true;
    this.#asking ??= new Promise((resolve) => (this.#answer = resolve));
    return this.#asking;
  }

  give(key: string | null): void {
    this.#key = key;
    if (key === null) sessionStorage.removeItem(KEY);
    else sessionStorage.setItem(KEY, key);
    this.asked = false;
    this.#answer?.(key !== null);
    this.#answer = this.#asking = null;
  }
}

export const apiKey = new ApiKey();
