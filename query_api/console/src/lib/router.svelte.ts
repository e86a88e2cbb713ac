/** Addresses are hashes, `#/search?q=river`, so that the service serves one page. A view's whole state stands in its
 *  parameters: what is shown can be sent to somebody else. */

import { VIEWS } from "../views.ts";
import { withQuery, type Parameters } from "./query.ts";

export interface Place {
  view: string;
  parameters: URLSearchParams;
}

export function parseHash(hash: string): Place {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  return { view: path || "search", parameters: new URLSearchParams(query) };
}

/** `#/view?…`. */
export const formatHash = (view: string, parameters: Parameters = {}): string => withQuery(`#/${view}`, parameters);

/** The address of a view, or undefined where this console has no such view: show plain text then. */
export function linkTo(view: string, parameters: Parameters = {}): string | undefined {
  return VIEWS.some((each) => each.name === view) ? formatHash(view, parameters) : undefined;
}

class Router {
  place = $state.raw<Place>(parseHash(location.hash));

  constructor() {
    addEventListener("hashchange", () => (this.place = parseHash(location.hash)));
  }

  /** Shows a view, as a step that Back undoes. */
  open(view: string, parameters: Parameters = {}): void {
    location.hash = formatHash(view, parameters);
  }

  /** Changes the address of what is shown, without a step for Back. */
  replace(view: string, parameters: Parameters = {}): void {
    const hash = formatHash(view, parameters);
    if (hash === location.hash) return;
    history.replaceState(null, "", hash);
    this.place = parseHash(hash);
  }
}

export const router = new Router();
