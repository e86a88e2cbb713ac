/** Requests to the service, with its key. Each failure is an `ApiError` with a sentence that can be shown as it is. */

import { ApiError, problemOf } from "./problem.ts";
import { withQuery, type Parameters } from "./query.ts";

export interface Options {
  method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  query?: Parameters;
  /** Sent as JSON. */
  json?: unknown;
  /** Sent as it is: a form, a file. */
  body?: BodyInit;
  headers?: Record<string, string>;
  signal?: AbortSignal | undefined;
}

export interface Access {
  /** The service's address, `http://127.0.0.1:8420`; left out in a page that the service itself serves. */
  url?: string;
  /** Its API key or a session token; a function is asked for each request. */
  key?: string | null | (() => string | null);
  /** Called with the key of a request that was refused for it (401): whether it is to be sent again, with another. */
  onUnauthorized?: (key: string | null) => Promise<boolean>;
}

/** An id as one segment of a path. */
export const segment = (id: string): string => encodeURIComponent(id);

export class Requests {
  readonly #access: Access;
  readonly #root: string;

  constructor(access: Access) {
    this.#access = access;
    this.#root = access.url ? access.url.replace(/\/*$/, "/") : "";
  }

  /** The answer to a request, with a status of 2xx. Throws ApiError. */
  async send(path: string, options: Options = {}): Promise<Response> {
    const { method = "GET", query, json, headers, signal } = options;
    const body = json === undefined ? options.body : JSON.stringify(json);
    for (;;) {
      const key = this.#key();
      let response: Response;
      try {
        response = await fetch(this.#root + withQuery(path, query), {
          method,
          headers: {
            Accept: "application/json",
            ...(json === undefined ? {} : { "Content-Type": "application/json" }),
            ...headers,
            ...(key === null ? {} : { Authorization: `Bearer ${key}` }),
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
      if (response.status === 401 && (await this.#access.onUnauthorized?.(key))) continue;
      throw await problemOf(response);
    }
  }

  /** The JSON answer of a route. Throws ApiError. */
  async request<T>(path: string, options: Options = {}): Promise<T> {
    const response = await this.send(path, options);
    return (response.status === 204 ? undefined : await response.json()) as T;
  }

  #key(): string | null {
    const { key = null } = this.#access;
    return typeof key === "function" ? key() : key;
  }
}
