/** Server-Sent Events by fetch, so that the API key can be sent, with resuming: after a dropped connection the stream is
 *  asked for again with `Last-Event-ID`, and continues without a frame missing or coming twice (docs/sse.md). */

import { EventSourceParserStream } from "eventsource-parser/stream";

import { ApiError, asApiError, isAbort } from "./problem.ts";
import type { Options, Requests } from "./requests.ts";
import type { Frame, StreamError } from "./types.ts";

/** The connection dropped, and is made again after a while; or it was made again. */
export type Connection = { state: "dropped"; attempt: number; waitSeconds: number } | { state: "resumed" };

export interface Following {
  /** Ends the stream, with an AbortError. */
  signal?: AbortSignal | undefined;
  onConnection?: ((connection: Connection) => void) | undefined;
}

const LAST = new Set(["done", "error"]);
const ATTEMPTS = 12;
const FIRST_WAIT_SECONDS = 0.25;
const LONGEST_WAIT_SECONDS = 8;
const BUSY_MS = 40; // of frames that came together

/** What a route answers: frame by frame, by `for await`, or `whole()`, at once. It is sent when it is read. */
export class Answered<F extends Frame, Whole> implements AsyncIterable<F> {
  readonly #requests: Requests;
  readonly #path: string;
  readonly #options: Options;
  readonly #following: Following;

  constructor(requests: Requests, path: string, options: Options, following: Following = {}) {
    this.#requests = requests;
    this.#path = path;
    this.#options = { ...options, signal: following.signal };
    this.#following = following;
  }

  /** The same as one answer. Throws ApiError. */
  whole(): Promise<Whole> {
    return this.#requests.request<Whole>(this.#path, this.#options);
  }

  /** Its frames, up to the last one. Throws ApiError where the first request fails, where the stream cannot be resumed,
   *  and for a frame `error`; an AbortError once the signal is. */
  async *[Symbol.asyncIterator](): AsyncGenerator<F> {
    const { signal, onConnection } = this.#following;
    let lastEventId: string | undefined;
    let attempt = 0;
    for (;;) {
      let waitSeconds = Math.min(FIRST_WAIT_SECONDS * 2 ** attempt, LONGEST_WAIT_SECONDS);
      try {
        const resumed: Record<string, string> = lastEventId === undefined ? {} : { "Last-Event-ID": lastEventId };
        const headers = { ...this.#options.headers, ...resumed, Accept: "text/event-stream" };
        const response = await this.#requests.send(this.#path, { ...this.#options, headers });
        if (response.status === 204 || response.body === null) return; // all of it has come
        if (attempt > 0) onConnection?.({ state: "resumed" });
        let begun = performance.now();
        for await (const message of messages(response.body)) {
          if (performance.now() - begun > BUSY_MS) {
            await new Promise((resolve) => setTimeout(resolve)); // lets a page draw and answer keys between frames
            begun = performance.now();
          }
          lastEventId = message.id ?? lastEventId;
          const frame = { event: message.event ?? "message", data: JSON.parse(message.data) };
          if (frame.event === "error") {
            const { title, detail } = frame.data as StreamError;
            throw new ApiError(200, title, detail);
          }
          yield frame as F;
          if (LAST.has(frame.event)) return;
          attempt = 0;
        }
      } catch (error) {
        if (signal?.aborted || isAbort(error)) throw error;
        // what has begun is resumed; what never began is the caller's to try again
        const failure = error instanceof TypeError ? new ApiError(0, "No answer", "The connection dropped.") : error;
        const { passes, retryAfterSeconds = 0 } = asApiError(failure);
        if (lastEventId === undefined || !passes || attempt >= ATTEMPTS) throw failure;
        waitSeconds = Math.max(waitSeconds, retryAfterSeconds);
      }
      if (lastEventId === undefined) throw new ApiError(0, "No answer", "The connection closed before anything came.");
      if (attempt >= ATTEMPTS) throw new ApiError(0, "No answer", "The connection closes again and again.");
      attempt += 1;
      onConnection?.({ state: "dropped", attempt, waitSeconds });
      await pause(waitSeconds, signal);
    }
  }
}

async function* messages(body: ReadableStream<Uint8Array<ArrayBuffer>>) {
  const reader = body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream()).getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    reader.cancel().catch(() => undefined); // it may have failed already
  }
}

function pause(seconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(new DOMException("aborted", "AbortError"));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, seconds * 1000);
    signal?.addEventListener("abort", stop, { once: true });
  });
}
