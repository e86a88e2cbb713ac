/** Server-Sent Events by fetch, so that the API key can be sent, with resuming: after a dropped connection the stream is
 *  asked for again with `Last-Event-ID`, and continues without a frame missing or coming twice (docs/sse.md). */

import { EventSourceParserStream } from "eventsource-parser/stream";

import { ApiError, asApiError, isAbort, send, type Options } from "./api.ts";
import type { SearchAnswer } from "./types.ts";

/** Of a search: its first frame, the end of a stage, and its last frame. */
export type Meta = Pick<SearchAnswer, "retrieval_id" | "query" | "mode" | "understanding" | "snapshot" | "cached">;
export interface Stage {
  name: string;
  seconds: number;
  candidates: number;
  error: string | null;
}
export type Done = Pick<SearchAnswer, "timings" | "failed_channels" | "next_cursor" | "answer" | "notes">;

export interface Frame {
  event: string;
  data: unknown;
}

/** A frame of its own for the reader: the connection dropped, or was made again. */
export type Connection = { state: "dropped"; attempt: number; waitSeconds: number } | { state: "resumed" };

export interface StreamOptions extends Options {
  signal: AbortSignal;
  onConnection?: (connection: Connection) => void;
}

const LAST = new Set(["done", "error"]);
const ATTEMPTS = 12;
const FIRST_WAIT_SECONDS = 0.25;
const LONGEST_WAIT_SECONDS = 8;
const BUSY_MS = 40; // of frames that came together

/** The frames of a route until its last one. Throws ApiError where the first request fails, or where the stream cannot
 *  be resumed; an AbortError once `signal` is. */
export async function* follow(path: string, options: StreamOptions): AsyncGenerator<Frame> {
  const { signal, onConnection } = options;
  let lastEventId: string | undefined;
  let attempt = 0;
  for (;;) {
    let waitSeconds = Math.min(FIRST_WAIT_SECONDS * 2 ** attempt, LONGEST_WAIT_SECONDS);
    try {
      const resumed: Record<string, string> = lastEventId === undefined ? {} : { "Last-Event-ID": lastEventId };
      const response = await send(path, {
        ...options,
        headers: { ...options.headers, ...resumed, Accept: "text/event-stream" },
      });
      if (response.status === 204 || response.body === null) return; // all of it has come
      if (attempt > 0) onConnection?.({ state: "resumed" });
      let begun = performance.now();
      for await (const message of messages(response.body)) {
        if (performance.now() - begun > BUSY_MS) {
          await new Promise((resolve) => setTimeout(resolve)); // lets the page draw and answer keys between frames
          begun = performance.now();
        }
        lastEventId = message.id ?? lastEventId;
        const event = message.event ?? "message";
        yield { event, data: JSON.parse(message.data) };
        if (LAST.has(event)) return;
        attempt = 0;
      }
    } catch (error) {
      if (signal.aborted || isAbort(error)) throw error;
      // what has begun is resumed; what never began is the reader's to try again
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

function pause(seconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(new DOMException("aborted", "AbortError"));
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, seconds * 1000);
    signal.addEventListener("abort", stop, { once: true });
  });
}
