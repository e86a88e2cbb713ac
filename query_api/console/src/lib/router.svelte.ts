/** Addresses are hashes, `#/search?q=river`, so that the service serves one page. A view's whole state is in its
 *  parameters: what is shown can be sent to somebody else. */

import { VIEWS } from "../views.ts";
import { withQuery, type Parameters } from "../client/query.ts";
import { Recent } from "./recent.ts";

const ENTRIES = 50;

export interface Place {
  view: string;
  parameters: URLSearchParams;
}

export function parseHash(hash: string): Place {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  return { view: path || VIEWS[0]!.name, parameters: new URLSearchParams(query) };
}

/** `#/view?…`. */
export const formatHash = (view: string, parameters: Parameters = {}): string => withQuery(`#/${view}`, parameters);

/** The address of a view, or undefined where this console has no such view: show plain text then. */
export function linkTo(view: string, parameters: Parameters = {}): string | undefined {
  return VIEWS.some((each) => each.name === view) ? formatHash(view, parameters) : undefined;
}

class Router {
  place = $state.raw<Place>(parseHash(location.hash));
  /** Names this step of the browser's history: Back and Forward come to the same one again, a new step has a new one. */
  entry = entryOfHistory();
  /** How far down the page was when the entry was left. */
  readonly #scrolled = new Recent<number>(ENTRIES);

  constructor() {
    addEventListener("hashchange", () => {
      this.#scrolled.set(this.entry, scrollY);
      const { view } = this.place;
      const isNew = entryIn(history.state) === null;
      this.entry = entryOfHistory();
      this.place = parseHash(location.hash);
      if (isNew && view !== this.place.view) scrollTo(0, 0);
    });
  }

  /** Scrolls to where this entry was left; call it once what it shows is drawn, for the browser itself scrolls before
   *  there is anything to scroll to. */
  scrollBack(): void {
    scrollTo(0, this.#scrolled.get(this.entry) ?? 0);
  }

  /** Shows a view, as a step that Back undoes. */
  open(view: string, parameters: Parameters = {}): void {
    location.hash = formatHash(view, parameters);
  }

  /** Changes the address of what is shown, without a step for Back. */
  replace(view: string, parameters: Parameters = {}): void {
    const hash = formatHash(view, parameters);
    if (hash === location.hash) return;
    history.replaceState(history.state, "", hash);
    this.place = parseHash(hash);
  }
}

/** The name of the entry that is shown, kept in the entry itself; an entry that has none gets one. */
function entryOfHistory(): string {
  const known = entryIn(history.state);
  if (known !== null) return known;
  const entry = `${performance.timeOrigin}.${performance.now()}`;
  history.replaceState({ entry }, "");
  return entry;
}

const entryIn = (state: unknown): string | null =>
  typeof state === "object" && state !== null && "entry" in state ? String(state.entry) : null;

export const router = new Router();
