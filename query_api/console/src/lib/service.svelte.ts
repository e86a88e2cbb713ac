/** Whether the service answers and is ready, asked for now and then by its open route `/readyz`. */

import { ApiError, type Readiness } from "../client/thalweg.ts";
import { poll } from "./poll.ts";
import { thalweg } from "./thalweg.ts";

const SECONDS_WELL = 10;
const SECONDS_FOLLOWED = 2;
const SECONDS_ILL = 2;

class ServiceState {
  /** Null until the first answer, and while the service does not answer. */
  readiness = $state.raw<Readiness | null>(null);
  away = $state(false);
  /** Counted up whenever the service is ready again after it was not: what failed meanwhile is worth asking again. */
  recoveries = $state(0);
  /** Changes whenever another graph is served, within seconds of it while somebody follows; null while none is known. */
  graphPosition = $state<number | null>(null);
  #followers = 0;
  #wasIll = false;
  #controller = new AbortController();

  /** Asks at once, and from then on while the page is visible. */
  check(): void {
    this.#controller.abort();
    this.#controller = new AbortController();
    void poll(() => this.#ask(), this.#controller.signal);
  }

  /** How many milliseconds later to ask again. */
  async #ask(): Promise<number> {
    try {
      this.readiness = await readiness();
      this.graphPosition = this.readiness.graph_position ?? this.graphPosition;
      this.away = false;
    } catch {
      this.readiness = null;
      this.away = true;
    }
    const ready = this.readiness?.ready ?? false;
    if (ready && this.#wasIll) this.recoveries += 1;
    this.#wasIll = !ready;
    const well = ready && this.readiness?.kafka === "reachable";
    return (well ? (this.#followers > 0 ? SECONDS_FOLLOWED : SECONDS_WELL) : SECONDS_ILL) * 1000;
  }

  /** Asks more often, so that `graphPosition` is news, until the returned function is called. */
  follow(): () => void {
    this.#followers += 1;
    if (this.#followers === 1) this.check();
    return () => (this.#followers -= 1);
  }

  /** Until the returned function is called. */
  watch(): () => void {
    this.check();
    return () => this.#controller.abort();
  }
}

/** As it is said with 200, and with 503. */
async function readiness(): Promise<Readiness> {
  try {
    return await thalweg.request<Readiness>("readyz", { signal: AbortSignal.timeout(5_000) });
  } catch (failure) {
    if (failure instanceof ApiError && "ready" in failure.members) return failure.members as Readiness;
    throw failure;
  }
}

export const service = new ServiceState();
