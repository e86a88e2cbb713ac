/** An edit on its way: sent, then read back, so that what is shown is never older than it. */

import { asApiError, request, type ApiError } from "./api.ts";
import type { Parameters } from "./query.ts";
import type { EditAccepted } from "./types.ts";

export class Writing {
  busy = $state(false);
  said = $state("");
  error = $state.raw<ApiError | null>(null);

  forget(): void {
    this.said = "";
    this.error = null;
  }

  /** What was accepted, once reads show it; null where it was refused. `prepare` makes the body, and may throw. */
  async send(
    path: string,
    method: "POST" | "PUT" | "DELETE",
    { prepare, query, collection }: { prepare?: () => Promise<unknown> | unknown; query?: Parameters; collection?: string | undefined },
    done: string,
  ): Promise<EditAccepted | null> {
    this.busy = true;
    this.forget();
    try {
      const json = prepare === undefined ? undefined : await prepare();
      const accepted = await request<EditAccepted>(path, { method, json, query: query ?? {} });
      const { position, token } = accepted;
      const read = token === null ? "v1/reviews" : "v1/edges";
      await request(read, { query: { collection, limit: 1, after: token ?? position } });
      this.said = done;
      return accepted;
    } catch (failure) {
      this.error = asApiError(failure);
      return null;
    } finally {
      this.busy = false;
    }
  }
}
