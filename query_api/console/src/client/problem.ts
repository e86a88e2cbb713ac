/** What a request failed with: one class for all failures, made of the problem (RFC 9457) that the service answers. */

export class ApiError extends Error {
  override name = "ApiError";
  /** Of the response; 0 where the service did not answer, 200 where a stream failed after it had begun. */
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

/** The problem that a response holds, or what its status means. */
export async function problemOf(response: Response): Promise<ApiError> {
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

/** Whether the error is of a request that its caller gave up. */
export const isAbort = (error: unknown): boolean => error instanceof DOMException && error.name === "AbortError";

/** Any failure as an ApiError; what is not a failure of a request is shown by its message. */
export function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  return new ApiError(-1, "Something broke in this page", error instanceof Error ? error.message : String(error));
}
