/** The state of the service, asked for every second while the page is looked at, with what became of it over time. */

import { asApiError, isAbort, request, type ApiError } from "../../lib/api.ts";

export interface PartitionLag {
  topic: string;
  partition: number;
  reached: number;
  end: number | null;
  records: number | null;
  seconds: number | null;
}

export interface Status {
  version: string;
  uptime_seconds: number;
  readiness: { ready: boolean; reasons: string[]; notes: string[]; kafka: string; snapshot_age_seconds: number | null };
  kafka_servers: string | null;
  generation: string | null;
  positions: string | null;
  lag: PartitionLag[];
  lag_records: number | null;
  lag_seconds: number | null;
  freshness: { seconds: number; measured_seconds_ago: number } | null;
  worker: {
    state: string;
    heard_seconds_ago: number | null;
    missing: string[];
    crashes_in_ten_minutes: number;
    last_failure: string | null;
  } | null;
  dead_letters_open: number | null;
  dead_letters_last_day: number | null;
  disk_free_bytes: number | null;
  damage: unknown[];
  counts: Record<string, number>;
  streams_open: number;
  searches_running: number;
  searches_waiting: number;
  searches_refused: number;
  memory_bytes: number;
  embedding_model: string | null;
}

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
  now = $state.raw<Status | null>(null);
  samples = $state.raw<Sample[]>([]);
  error = $state.raw<ApiError | null>(null);
  #reached: { records: number; at: number } | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Until the returned function is called. */
  watch(): () => void {
    const controller = new AbortController();
    const seen = () => {
      if (document.hidden) return;
      clearTimeout(this.#timer);
      void this.#look(controller.signal);
    };
    document.addEventListener("visibilitychange", seen);
    seen();
    return () => {
      controller.abort();
      clearTimeout(this.#timer);
      document.removeEventListener("visibilitychange", seen);
    };
  }

  async #look(signal: AbortSignal): Promise<void> {
    try {
      const status = await request<Status>("v1/status", { signal });
      this.now = status;
      this.error = null;
      this.samples = [...this.samples.slice(1 - KEPT), this.#sample(status)];
    } catch (failure) {
      if (isAbort(failure)) return;
      this.error = asApiError(failure);
      this.#reached = null;
    }
    clearTimeout(this.#timer);
    if (!signal.aborted && !document.hidden) this.#timer = setTimeout(() => void this.#look(signal), INTERVAL_MS);
  }

  #sample(status: Status): Sample {
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
