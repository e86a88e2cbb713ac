/** What is shown of the graph, and how it grows: begun at a node or at the path of a hit, expanded, joined by paths. */

import { asApiError, type ApiError } from "../../lib/api.ts";
import { plural } from "../../lib/format.ts";
import { foundHit, paths, subgraph, together, type FoundHit, type Part } from "./api.ts";
import { channelsOf, chunksOf, inWords, nodesOf, traced } from "./hitPath.ts";
import { GraphModel } from "./model.svelte.ts";

/** Where a picture begins, as in its address. */
export interface Start {
  /** A name or an id; "" for none. */
  node: string;
  collection: string;
  depth: number;
  /** At most so many at first. */
  nodes: number;
  /** The hit whose path is shown, in place of a node. */
  hit: HitOf | null;
}

interface HitOf {
  retrieval: string;
  rank: number;
  /** The node of the path that is chosen; "" for the hit itself. */
  at: string;
}

const EXPANDED_NODES = 200;
const NEIGHBOURS = 25;
const AROUND_PATH_NODES = 100;
const IDENTIFIER = /^[0-9a-f]{32}$/;

export class Exploration {
  readonly model = new GraphModel();
  /** The node or edge that is described, by its id or key. */
  selected = $state<string | null>(null);
  pathFrom = $state<string | null>(null);
  running = $state(true);
  /** Whether the graph has more around what is shown. */
  truncated = $state(false);
  loading = $state(false);
  error = $state.raw<ApiError | null>(null);
  notice = $state("");
  /** The hit whose path is shown. */
  found = $state.raw<FoundHit | null>(null);
  #start: Start | null = null;

  /** How the hit was found, in sentences; "" where the picture did not begin at one. */
  get explanation(): string {
    if (this.found === null) return "";
    const { hit } = this.found;
    if (hit.path.length > 0) return inWords(hit.path);
    return `Found by ${channelsOf(hit) || "the search"}, not through the graph. Around it is what the graph holds.`;
  }

  async begin(start: Start): Promise<void> {
    this.#start = start;
    this.model.clear();
    this.selected = this.pathFrom = this.error = this.found = null;
    this.notice = "";
    this.truncated = this.loading = false;
    this.model.mutedNodes = new Set();
    try {
      if (start.hit !== null) await this.#beginAtHit(start, start.hit);
      else if (start.node !== "") await this.#beginAtNode(start, start.node, start.collection);
      if (this.#start === start) this.notice = "";
    } catch (failure) {
      if (this.#start === start) this.error = asApiError(failure);
    }
  }

  /** What a person would call the node that was begun at; null where it was not asked for by its id. */
  get startName(): string | null {
    void this.model.version;
    const first = this.model.nodes[0];
    return first !== undefined && IDENTIFIER.test(this.#start?.node ?? "") ? first.label : null;
  }

  async #beginAtNode(start: Start, node: string, collection: string): Promise<void> {
    await this.#expand(node, collection, start.depth, start.nodes);
    if (this.#start !== start) return;
    const first = this.model.nodes[0];
    this.selected = first?.id ?? null;
    // around an entity are dozens of chunks that mention it: they would hide whom it is mentioned with
    if (first?.kind === "entity") this.model.mutedNodes = new Set(["chunk"]);
  }

  /** The path with what is around its chunks; around a hit without one, what is around that. */
  async #beginAtHit(start: Start, { retrieval, rank, at }: HitOf): Promise<void> {
    this.loading = true;
    try {
      const found = await foundHit(retrieval, rank);
      if (this.#start !== start) return;
      this.found = found;
      const { hit } = found;
      if (hit.path.length === 0) return await this.#beginAtNode(start, hit.chunk_id, hit.collection);
      const around = await Promise.allSettled([
        ...chunksOf(hit).map((id) => subgraph(id, hit.collection, { limit: AROUND_PATH_NODES })),
        ...nodesOf(hit).map((id) => subgraph(id, hit.collection, { kinds: ["about"], limit: AROUND_PATH_NODES })),
      ]);
      if (this.#start !== start) return;
      const parts = around.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
      const [lost] = around.flatMap((each) => (each.status === "rejected" ? [each.reason as unknown] : []));
      if (parts.length === 0) throw lost;
      this.#add(parts);
      const { marked, further } = traced(this.model.graph, hit);
      this.#add([{ nodes: [], edges: further }]);
      this.model.mark({ title: "path of the hit", marked: this.#withSteps(marked) });
      this.selected = [at, hit.chunk_id, ...marked].find((id) => this.model.node(id) !== null) ?? null;
      this.running = true;
    } finally {
      if (this.#start === start) this.loading = false;
    }
  }

  #add(parts: readonly Part[]): void {
    this.model.add({ nodes: parts.flatMap(({ nodes }) => nodes), edges: parts.flatMap(({ edges }) => edges) });
    this.truncated ||= parts.some(({ truncated = false }) => truncated);
  }

  #withSteps(marked: ReadonlySet<string>): Set<string> {
    const steps = this.model.graph.filterEdges((_, { kind }) => kind === "step");
    return new Set([...marked, ...steps]);
  }

  /** Adds what is around a node that is shown. */
  async expand(id: string): Promise<void> {
    await this.#attempt(() => this.#expand(id, this.#collectionOf(id), 1, EXPANDED_NODES));
  }

  async #expand(id: string, collection: string, depth: number, limit: number): Promise<void> {
    const start = this.#start;
    const { model } = this;
    this.loading = true;
    try {
      const found = await subgraph(id, collection, { depth, limit });
      if (this.#start !== start) return;
      let came = model.add(found, id);
      this.truncated ||= found.truncated ?? false;
      const centre = model.node(id) ?? found.nodes[0];
      if (centre?.kind === "entity") {
        const others = await together(centre.id, centre.collection ?? collection, NEIGHBOURS);
        if (this.#start !== start) return;
        came += model.add(others, centre.id);
      }
      this.notice = `${plural(came, "node")} more.`;
      this.running = true;
    } finally {
      if (this.#start === start) this.loading = false;
    }
  }

  hide(id: string): void {
    this.model.hide(id);
    if (this.selected === id) this.selected = null;
    this.notice = "Hidden. Expand a neighbour to bring it back.";
  }

  /** Begins a path at the node, or ends it there. */
  async path(id: string): Promise<void> {
    if (this.pathFrom === null || this.pathFrom === id) {
      this.pathFrom = this.pathFrom === id ? null : id;
      return;
    }
    const from = this.pathFrom;
    this.pathFrom = null;
    await this.#attempt(() => this.#join(from, id));
  }

  async #join(from: string, to: string): Promise<void> {
    const { model } = this;
    const best = (await paths(from, to, this.#collectionOf(from))).paths[0];
    if (best === undefined) {
      this.notice = "No path of four steps or fewer joins the two.";
      return;
    }
    const marked = new Set<string>([from, to]);
    for (const { source, target } of best.steps) {
      const ends = [source.id, target.id].filter((end) => end !== null);
      for (const end of ends) {
        if (model.node(end) === null) await this.#expand(end, this.#collectionOf(from), 1, AROUND_PATH_NODES);
        marked.add(end);
      }
      model.graph.forEachEdge((key, _, one, other) => {
        if (ends.includes(one) && ends.includes(other)) marked.add(key);
      });
    }
    model.mark({ title: "path", marked });
    this.notice = `A path of ${plural(best.steps.length, "step")}, strength ${best.strength.toFixed(2)}: ${[
      best.steps[0]!.source.label,
      ...best.steps.map(({ predicate, target }) => `${predicate.replaceAll("_", " ")} ${target.label}`),
    ].join(" → ")}`;
  }

  /** The node of this name or id, else one whose name holds it. */
  find(words: string): string | null {
    const wanted = words.trim().toLowerCase();
    if (wanted === "") return null;
    const { nodes } = this.model;
    const found =
      nodes.find(({ label, id }) => label.toLowerCase() === wanted || id === wanted) ??
      nodes.find(({ label }) => label.toLowerCase().includes(wanted));
    if (found === undefined) this.notice = "Nothing that is shown is called so.";
    else this.selected = found.id;
    return found?.id ?? null;
  }

  /** Chooses nothing, and shows no path. */
  rest(): void {
    this.selected = this.pathFrom = null;
    this.model.mark(null);
  }

  #collectionOf(id: string): string {
    return this.model.node(id)?.collection ?? this.found?.hit.collection ?? this.#start?.collection ?? "";
  }

  async #attempt(act: () => Promise<void>): Promise<void> {
    try {
      this.error = null;
      await act();
    } catch (failure) {
      this.error = asApiError(failure);
    }
  }
}
