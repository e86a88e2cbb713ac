/** What becomes of a write, as the service reports it step by step. */

import { ApiError, segment } from "../../lib/api.ts";
import { follow, type Connection } from "../../lib/events.ts";
import type { DocumentStatus } from "../../lib/types.ts";

/** The status of a document after each step of the write with this token, the last one final. Throws ApiError. */
export async function* statuses(
  id: string,
  collection: string,
  token: string,
  onConnection?: (connection: Connection) => void,
): AsyncGenerator<DocumentStatus> {
  const frames = follow(`v1/documents/${segment(id)}/status`, {
    query: { collection, position: token },
    signal: new AbortController().signal, // to its end, which the service sees to
    ...(onConnection ? { onConnection } : {}),
  });
  for await (const { event, data } of frames) {
    if (event === "error") {
      const { title, detail } = data as { title: string; detail: string };
      throw new ApiError(503, title, detail);
    }
    yield data as DocumentStatus;
  }
}

/** The first status that is enough, or the last one; undefined where none came. */
export async function statusAfter(
  id: string,
  collection: string,
  token: string,
  isEnough: (status: DocumentStatus) => boolean,
): Promise<DocumentStatus | undefined> {
  let last: DocumentStatus | undefined;
  for await (const status of statuses(id, collection, token)) {
    last = status;
    if (isEnough(status)) break;
  }
  return last;
}
