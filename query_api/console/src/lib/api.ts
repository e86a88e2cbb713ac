/** Requests to the service. Each failure is an `ApiError` with a sentence that can be shown as it is. */

import { apiKey } from "./key.svelte.ts";
import { withQuery, type Parameters } from "./query.ts";

export interface Options {
  method?: "GET" | "POST" | "PUT" | "DELETE";
  query?: Parameters;
  /** Sent as JSON. */
  json?: unknown;
  /** Sent as it is: a form, a file. */
  body?: BodyInit;
  headers?: Record<string, string>;
  signal?: AbortSignal | undefined;
}

/** What a request failed with. `status` is 0 where the service did not answer at all. */
export class ApiError extends Error {
  override name = "ApiError";
  status: number;
  title: string;
  reason: string | undefined;
  retryAfterSeconds: number | undefined;
  /** What to do about a document that was refused. */
  advice: string | undefined;
  /** What else the problem states of itself. */
  members: Record<string, unknown> = {};

  constructor(status: number, title: string, detail: string, reason?: string, retryAfterSeconds?: number, advice?: string) {
    super(detail);
    this.status = status;
    this.title = title;
    this.reason = reason;
    this.retryAfterSeconds = retryAfterSeconds;
    this.advice = advice;
  }

  /** Whether the same request may succeed in a while. */
  get passes(): boolean {
    return this.status === 0 || this.status === 429 || this.status === 503;
  }
}

/** An id as one segment of a path. */
export const segment = (id: string): string => encodeURIComponent(id);

/** The answer to a request, with a status of 2xx. `path` is relative to the page: `v1/search`. Asks for the API key where the service requires one. Throws ApiError. */
export async function send(path: string, options: Options = {}): Promise<Response> {
  const { method = "GET", query, json, headers, signal } = options;
  const body = json === undefined ? options.body : JSON.stringify(json);
  for (;;) {
    const sent = apiKey.headers;
    let response: Response;
    try {
      response = await fetch(withQuery(path, query), {
        method,
        headers: {
          Accept: "application/json",
          ...(json === undefined ? {} : { "Content-Type": "application/json" }),
          ...headers,
          ...sent,
        },
        body: body ?? null,
        signal: signal ?? null,
        cache: "no-store",
      });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new ApiError(0, "No answer", "The service does not answer. It may be restarting, or have been ended.");
    }
    if (response.ok) return response;
    if (response.status === 401 && (await apiKey.ask(sent))) continue;
    throw await problemOf(response);
  }
}

/** The JSON answer of a route. Throws ApiError. */
export async function request<T>(path: string, options: Options = {}): Promise<T> {
  const response = await send(path, options);
  return (response.status === 204 ? undefined : await response.json()) as T;
}

/** The problem (RFC 9457) that a response holds, or what its status means. */
async function problemOf(response: Response): Promise<ApiError> {
  const seconds = Number(response.headers.get("Retry-After"));
  let title = response.statusText || "Failed";
  let detail = `The service answered with status ${response.status}.`;
  let reason: string | undefined;
  let advice: string | undefined;
  let members: Record<string, unknown> = {};
  try {
    const body: unknown = await response.json();
    if (body !== null && typeof body === "object") {
      const problem = (members = body as Record<string, unknown>);
      if (typeof problem["title"] === "string") title = problem["title"];
      if (typeof problem["detail"] === "string") detail = problem["detail"];
      if (typeof problem["reason"] === "string") reason = problem["reason"];
      advice = adviceOf(problem) ?? (problem["refused"] as Record<string, unknown>[] | undefined)?.map(adviceOf)[0];
    }
  } catch {
    // no JSON: a proxy's own page
  }
  const error = new ApiError(response.status, title, detail, reason, seconds > 0 ? seconds : undefined, advice);
  error.members = members;
  return error;
}

const adviceOf = (problem: Record<string, unknown>): string | undefined =>
  typeof problem["advice"] === "string" ? problem["advice"] : undefined;

/** Whether the error is of a request that the page itself gave up. */
export const isAbort = (error: unknown): boolean => error instanceof DOMException && error.name === "AbortError";

/** Any failure as an ApiError; what is not a failure of a request is shown by its message. */
export function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  return new ApiError(-1, "Something broke in this page", error instanceof Error ? error.message : String(error));
}
