/** What becomes of a write, as the service reports it step by step. */

import type { DocumentStatus } from "../../client/thalweg.ts";
import { thalweg } from "../../lib/thalweg.ts";

/** The first status that is enough, or the last one; undefined where none came. */
export async function statusAfter(
  id: string,
  collection: string,
  token: string,
  isEnough: (status: DocumentStatus) => boolean,
): Promise<DocumentStatus | undefined> {
  let last: DocumentStatus | undefined;
  for await (const { data } of thalweg.documents.status(id, { collection, token })) {
    last = data;
    if (isEnough(data)) break;
  }
  return last;
}
