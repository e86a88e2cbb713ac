/** The collections there are, shared by the views, and what their documents' fields hold. */

import { type ApiError, asApiError, type CollectionList, type CollectionSummary, type FieldList, type FieldSummary, type FieldValueList, segment } from "../client/thalweg.ts";
import { thalweg } from "./thalweg.ts";

class Collections {
  list = $state.raw<CollectionSummary[] | null>(null);
  error = $state.raw<ApiError | null>(null);

  get documents(): number | null {
    return this.list === null ? null : this.list.reduce((sum, each) => sum + each.documents, 0);
  }

  /** The one that documents are in, where there is no choice: notes of research lie in a collection of their own. */
  get only(): string | null {
    const found = this.list?.filter(({ documents, saved_notes }) => documents > saved_notes) ?? [];
    return found.length === 1 ? found[0]!.name : null;
  }

  async refresh(): Promise<void> {
    try {
      this.list = (await thalweg.request<CollectionList>("v1/collections")).collections;
      this.error = null;
    } catch (failure) {
      this.error = asApiError(failure);
    }
  }
}

export const collections = new Collections();

/** Fewer collections than this are asked for their fields where a search is in all of them. */
const MOST_COLLECTIONS = 5;

/** The fields that documents of a collection have, or of the first few, those of most documents first; none where the
 *  service does not say. */
export async function fieldsOf(collection: string | undefined, signal: AbortSignal): Promise<FieldSummary[]> {
  const found = await Promise.all(
    asked(collection).map((name) => quietly<FieldList>(`v1/collections/${segment(name)}/fields`, {}, signal)),
  );
  const fields = new Map<string, FieldSummary>();
  for (const field of found.flatMap((answer) => answer?.fields ?? [])) {
    const documents = field.documents + (fields.get(field.name)?.documents ?? 0);
    fields.set(field.name, { ...field, documents });
  }
  return [...fields.values()].sort((one, other) => other.documents - one.documents);
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
      return quietly<FieldValueList>(path, { prefix }, signal);
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
    return await thalweg.request<T>(path, { query, signal });
  } catch {
    return null;
  }
}
