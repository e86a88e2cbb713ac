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

/** A field of a collection's documents, with some of its values, commonest first. */
export interface Field {
  name: string;
  values: string[];
}

interface FieldsAnswer {
  fields: { name: string; values?: { value: unknown }[] }[];
}

/** The fields of a collection; none where the service has no route for them or does not answer. */
export async function fieldsOf(collection: string, signal: AbortSignal): Promise<Field[]> {
  try {
    const answer = await request<FieldsAnswer>(`v1/collections/${segment(collection)}/fields`, { signal });
    return answer.fields.map(({ name, values = [] }) => ({ name, values: values.map(({ value }) => String(value)) }));
  } catch {
    return []; // fields can still be typed
  }
}
