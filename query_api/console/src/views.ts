/** The views there are. A view is one component in `views/`, loaded when it is first shown; a line here adds it to the
 *  navigation and makes links to it work (`lib/router.svelte.ts`). */

import type { Component } from "svelte";

export interface View {
  /** What follows `#/`. */
  name: string;
  title: string;
  /** The view that leads to it; the navigation shows that in its place. */
  within?: string;
  load: () => Promise<{ default: Component }>;
}

export const VIEWS: readonly View[] = [
  { name: "ask", title: "Ask", load: () => import("./views/Ask.svelte") },
  { name: "search", title: "Search", load: () => import("./views/Search.svelte") },
  { name: "study", title: "Study", load: () => import("./views/Study.svelte") },
  { name: "documents", title: "Documents", load: () => import("./views/Documents.svelte") },
  { name: "graph", title: "Graph", load: () => import("./views/Graph.svelte") },
  { name: "entities", title: "Entities", load: () => import("./views/Entities.svelte") },
  { name: "operation", title: "Operation", load: () => import("./views/Operation.svelte") },
  { name: "usage", title: "Usage", load: () => import("./views/Usage.svelte") },
  { name: "ground-truth", title: "Ground truth", within: "evaluation", load: () => import("./views/GroundTruth.svelte") },
  { name: "evaluation", title: "Evaluation", load: () => import("./views/Evaluation.svelte") },
];
