/** The collections there are, shared by the views, and what their documents' fields hold. */

import { asApiError, request, segment, type ApiError } from "./api.ts";
import type { Collection } from "./types.ts";

class Collections {
  list = $state.raw<Collection[] | null>(null);
  error = $state.raw<ApiError | null>(null);

  get documents(): number | null {
    return this.list === null ? null : this.list.reduce((sum, each) => sum + each.documents, 0);
  }

  async refresh(): Promise<void> {
    try {
      this.list = (await request<{ collections: Collection[] }>("v1/collections")).collections;
      this.error = null;
    } catch (failure) {
      this.error = asApiError(failure);
    }
  }
}

export const collections = new Collections();

/** Fewer collections than this are asked for their fields where a search is in all of them. */
const MOST_COLLECTIONS = 5;

/** The fields that documents of a collection have, or of the first few; none where the service does not say: fields can
 *  be typed all the same. */
export async function fieldNames(collection: string | undefined, signal: AbortSignal): Promise<string[]> {
  const found = await Promise.all(
    asked(collection).map((name) =>
      quietly<{ fields: { name: string }[] }>(`v1/collections/${segment(name)}/fields`, {}, signal),
    ),
  );
  return [...new Set(found.flatMap((answer) => answer?.fields.map((field) => field.name) ?? []))];
}

/** Values of a field that begin so, those of most documents first. */
export async function fieldValues(
  collection: string | undefined,
  field: string,
  prefix: string,
  signal: AbortSignal,
): Promise<string[]> {
  const found = await Promise.all(
    asked(collection).map((name) => {
      const path = `v1/collections/${segment(name)}/fields/${segment(field)}/values`;
      return quietly<{ values: { value: string }[] }>(path, { prefix }, signal);
    }),
  );
  return [...new Set(found.flatMap((answer) => answer?.values.map(({ value }) => value) ?? []))];
}

function asked(collection: string | undefined): string[] {
  if (collection !== undefined) return [collection];
  return (collections.list ?? []).map((each) => each.name).slice(0, MOST_COLLECTIONS);
}

async function quietly<T>(path: string, query: Record<string, string>, signal: AbortSignal): Promise<T | null> {
  try {
    return await request<T>(path, { query, signal });
  } catch {
    return null;
  }
}
