/** Something that was asked, and how far its stream is. It goes on while another view is shown. */

import { type ApiError, asApiError, type Following, isAbort } from "../../client/thalweg.ts";
import { service } from "../../lib/service.svelte.ts";

export class Asked {
  readonly question: string;
  running = $state(false);
  dropped = $state(false);
  stopped = $state(false);
  error = $state.raw<ApiError | null>(null);
  #controller = new AbortController();

  constructor(question: string) {
    this.question = question;
  }

  /** Forgets what came before. */
  begin(): void {
    this.#controller = new AbortController();
    this.error = null;
    this.stopped = false;
    this.running = true;
  }

  /** Each frame of its stream, until it is stopped. */
  protected async read<F>(open: (following: Following) => AsyncIterable<F>, take: (frame: F) => void): Promise<void> {
    const { signal } = this.#controller;
    try {
      const onConnection = ({ state }: { state: string }) => (this.dropped = state === "dropped");
      for await (const frame of open({ signal, onConnection })) take(frame);
    } catch (failure) {
      if (signal.aborted || isAbort(failure)) return;
      this.error = asApiError(failure);
      if (this.error.passes) service.check();
    } finally {
      if (this.#controller.signal === signal) this.running = this.dropped = false;
    }
  }

  stop(): void {
    this.stopped = this.running;
    this.#controller.abort();
    this.running = this.dropped = false;
  }
}
