/** The state of the service, asked for every second while the page is looked at, with what became of it over time. */

import { type ApiError, asApiError, isAbort, type ServiceStatus } from "../../client/thalweg.ts";
import { thalweg } from "../../lib/thalweg.ts";
import { poll } from "../../lib/poll.ts";

/** One look at the service. `seconds` is the time since 1970. */
export interface Sample {
  seconds: number;
  lagRecords: number | null;
  lagSeconds: number | null;
  /** Records of the documents topic that became searchable, a second. */
  recordsPerSecond: number | null;
}

const INTERVAL_MS = 1_000;
const KEPT = 600;

export class StatusWatch {
  now = $state.raw<ServiceStatus | null>(null);
  samples = $state.raw<Sample[]>([]);
  error = $state.raw<ApiError | null>(null);
  #reached: { records: number; at: number } | null = null;

  /** Until the returned function is called. */
  watch(): () => void {
    const controller = new AbortController();
    void poll(() => this.#look(controller.signal), controller.signal);
    return () => controller.abort();
  }

  async #look(signal: AbortSignal): Promise<number> {
    try {
      const status = await thalweg.request<ServiceStatus>("v1/status", { signal });
      this.now = status;
      this.error = null;
      this.samples = [...this.samples.slice(1 - KEPT), this.#sample(status)];
    } catch (failure) {
      if (isAbort(failure)) return INTERVAL_MS;
      this.error = asApiError(failure);
      this.#reached = null;
    }
    return INTERVAL_MS;
  }

  #sample(status: ServiceStatus): Sample {
    const at = Date.now() / 1000;
    const records = status.lag
      .filter(({ topic }) => topic.endsWith("documents.v1"))
      .reduce((sum, { reached }) => sum + reached, 0);
    const before = this.#reached;
    this.#reached = { records, at };
    return {
      seconds: at,
      lagRecords: status.lag_records,
      lagSeconds: status.lag_seconds,
      recordsPerSecond: before === null ? null : Math.max(0, records - before.records) / (at - before.at),
    };
  }
}
