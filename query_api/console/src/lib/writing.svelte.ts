/** An edit on its way: sent, then read back, so that what is shown is never older than it. */

import { ApiError, asApiError, type EditAccepted, type Parameters } from "../client/thalweg.ts";
import { thalweg } from "./thalweg.ts";

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
      const json = prepare === undefined ? undefined : await bodyOf(prepare);
      const accepted = await thalweg.request<EditAccepted>(path, { method, json, query: query ?? {} });
      const { position, token } = accepted;
      if (token === null) await thalweg.request("v1/reviews", { query: { collection, limit: 1, after: position } });
      else await thalweg.wait(token);
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

/** What a form holds is refused here as the service would. */
async function bodyOf(prepare: () => Promise<unknown> | unknown): Promise<unknown> {
  try {
    return await prepare();
  } catch (failure) {
    throw failure instanceof ApiError ? failure : new ApiError(422, "Not saved", asApiError(failure).message);
  }
}
