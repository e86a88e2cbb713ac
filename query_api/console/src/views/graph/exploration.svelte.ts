/** What is shown of the graph, and how it grows: begun at a node or at the path of a hit, expanded, joined by paths. */

import { type ApiError, asApiError } from "../../client/thalweg.ts";
import { plural } from "../../lib/format.ts";
import { communitiesOf, community, foundHit, paths, subgraph, together, type FoundHit, type GraphEdge, type Part } from "./api.ts";
import { channelsOf, chunksOf, inWords, nodesOf, traced } from "./hitPath.ts";
import { edgeKey, GraphModel, type Group } from "./model.svelte.ts";

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
  /** The id of the community whose members are shown, in place of a node; "" for none. */
  community: string;
}

/** What is asked of the graph around a node. */
interface Asked {
  id: string;
  collection: string;
  depth: number;
  limit: number;
}

export const LEVELS = ["coarse", "medium", "fine"] as const;
export type Level = (typeof LEVELS)[number];

interface HitOf {
  retrieval: string;
  rank: number;
  /** The node of the path that is chosen; "" for the hit itself. */
  at: string;
}

const EXPANDED_NODES = 200;
const NEIGHBOURS = 25;
const AROUND_PATH_NODES = 100;
const MEMBERS = 40; // of a community, that are drawn
const OUTLINED = 24; // communities of a level
const OUTLINED_MEMBERS = 500; // of each
const RELOADED = 60; // parts of a picture; one of more stays as it is
const REST = 4; // times as long as a reload took, before the next of a graph that changes all the time
const SHORTEST_REST_MS = 300;
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
  /** What the picture was made of, so that it can be asked for again; the first is where it began. */
  #asked: Asked[] = [];
  #hidden = new Set<string>();
  #isBehind = false;
  #follows = false;
  /** The level whose communities are outlined, null for those of a community's own. */
  level = $state<Level | null>(null);

  /** How the hit was found, in sentences; "" where the picture did not begin at one. */
  get explanation(): string {
    if (this.found === null) return "";
    const { hit } = this.found;
    if (hit.path.length > 0) return inWords(hit.path);
    return `Found by ${channelsOf(hit) || "the search"}, not through the graph. Around it is what the graph holds.`;
  }

  async begin(start: Start): Promise<void> {
    this.#start = start;
    this.#asked = [];
    this.#hidden.clear();
    this.level = null;
    this.model.clear();
    this.selected = this.pathFrom = this.error = this.found = null;
    this.notice = "";
    this.truncated = this.loading = false;
    this.model.mutedNodes = new Set();
    try {
      if (start.hit !== null) await this.#beginAtHit(start, start.hit);
      else if (start.community !== "") await this.#beginAtCommunity(start);
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

  /** The members of a community and what joins them, its finer communities outlined. */
  async #beginAtCommunity(start: Start): Promise<void> {
    this.loading = true;
    try {
      const found = await community(start.community, MEMBERS);
      if (this.#start !== start) return;
      this.#asked = found.members.map(({ id }) => ({ id, collection: found.collection, depth: 1, limit: EXPANDED_NODES }));
      const part = await this.#askedAgain(this.#asked);
      const finer = await Promise.all(found.children.map(({ id }) => community(id, OUTLINED_MEMBERS)));
      if (this.#start !== start) return;
      const members = new Set(found.members.map(({ id }) => id));
      this.model.add({ nodes: part.nodes.filter(({ id }) => members.has(id)), edges: part.edges });
      this.truncated = found.size > found.members.length;
      this.model.groups = (finer.length > 0 ? finer : [found]).map(asGroup);
      this.selected = null;
    } finally {
      if (this.#start === start) this.loading = false;
    }
  }

  /** Outlines the communities of a level, as far as their members are drawn; none for null. */
  async outline(level: Level | null): Promise<void> {
    const start = this.#start;
    this.level = level;
    this.model.groups = [];
    if (level === null) return;
    await this.#attempt(async () => {
      const collection = this.model.nodes.find((each) => each.collection !== null)?.collection ?? start?.collection ?? "";
      const listed = await communitiesOf(collection, level, OUTLINED);
      const found = await Promise.all(listed.map(({ id }) => community(id, OUTLINED_MEMBERS)));
      if (this.#start !== start || this.level !== level) return;
      this.model.groups = found.map(asGroup);
      if (found.length === 0) this.notice = "No communities are known at this level.";
    });
  }

  /** The graph is another now: the picture is read again, as soon as nothing else is being read. */
  follow(): void {
    this.#isBehind = true;
    if (!this.#follows) void this.#catchUp();
  }

  async #catchUp(): Promise<void> {
    this.#follows = true;
    while (this.#isBehind) {
      const begun = performance.now();
      this.#isBehind = this.loading;
      await this.reload();
      const took = performance.now() - begun;
      await new Promise((resolve) => setTimeout(resolve, Math.max(SHORTEST_REST_MS, REST * took)));
    }
    this.#follows = false;
  }

  /** Asks again for what is shown, since the graph is another now: what came is added, what is gone leaves. */
  async reload(): Promise<void> {
    const start = this.#start;
    const asked = [...this.#asked];
    if (this.loading || start === null || asked.length === 0 || asked.length > RELOADED) return;
    const { model } = this;
    const part = await this.#askedAgain(asked).catch(() => null); // the next graph is another chance
    if (part === null || this.#start !== start || this.#asked.length !== asked.length) return;
    const drawn = (id: string) => start.community === "" || model.node(id) !== null;
    const nodes = part.nodes.filter(({ id }) => !this.#hidden.has(id) && drawn(id));
    const before = { nodes: new Set(model.graph.nodes()), edges: new Set(model.graph.edges()) };
    model.replace({ nodes, edges: [...part.edges, ...model.edges.filter(({ kind }) => kind === "step")] });
    const came = model.graph.filterNodes((id) => !before.nodes.has(id)).length;
    const joined = model.graph.filterEdges((key) => !before.edges.has(key)).length;
    const gone = [...before.nodes].filter((id) => !model.graph.hasNode(id)).length + [...before.edges].filter((key) => !model.graph.hasEdge(key)).length;
    if (came + joined + gone === 0) return;
    this.running = true;
    this.notice = `The graph has changed: ${plural(came, "node")} and ${plural(joined, "edge")} came${gone > 0 ? `, ${gone} left` : ""}.`;
  }

  /** All of it at once; what is gone meanwhile is empty. Throws ApiError where nothing can be had. */
  async #askedAgain(asked: readonly Asked[]): Promise<Part> {
    const parts = await Promise.all(
      asked.map(async ({ id, collection, depth, limit }): Promise<Part> => {
        try {
          return await around(id, collection, depth, limit);
        } catch (failure) {
          if (asApiError(failure).status === 404) return { nodes: [], edges: [] };
          throw failure;
        }
      }),
    );
    const nodes = new Map(parts.flatMap((part) => part.nodes).map((node) => [node.id, node]));
    const edges = new Map<string, GraphEdge>(parts.flatMap((part) => part.edges).map((edge) => [edgeKey(edge), edge]));
    return { nodes: [...nodes.values()], edges: [...edges.values()] };
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
      const found = await around(id, collection, depth, limit);
      if (this.#start !== start) return;
      if (!this.#asked.some((each) => each.id === id && each.depth >= depth)) this.#asked.push({ id, collection, depth, limit });
      for (const node of found.nodes) this.#hidden.delete(node.id);
      const came = model.add(found, id);
      this.truncated ||= found.truncated ?? false;
      this.notice = `${plural(came, "node")} more.`;
      this.running = true;
    } finally {
      if (this.#start === start) this.loading = false;
    }
  }

  /** After an edit: what is around the node, and what was shown already, as it is now. */
  async changed(id: string): Promise<void> {
    await this.reload();
    if (this.model.node(id) !== null) await this.expand(id);
    const { selected } = this;
    const isThere = selected !== null && (this.model.graph.hasNode(selected) || this.model.graph.hasEdge(selected));
    if (!isThere) this.selected = this.model.node(id)?.id ?? null;
  }

  hide(id: string): void {
    this.#hidden.add(id);
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

/** What the graph has around a node, and of an entity those that chunks mention with it. Throws ApiError. */
async function around(id: string, collection: string, depth: number, limit: number): Promise<Part> {
  const found = await subgraph(id, collection, { depth, limit });
  const centre = found.nodes[0];
  if (centre?.kind !== "entity" || centre.type === null) return found; // no entity, but a term that a fact ends in
  const others = await together(centre.id, centre.collection ?? collection, NEIGHBOURS);
  const known = new Set(found.nodes.map((node) => node.id));
  return { ...found, nodes: [...found.nodes, ...others.nodes.filter((node) => !known.has(node.id))], edges: [...found.edges, ...others.edges] };
}

const asGroup = ({ id, title, members }: { id: string; title: string; members: { id: string }[] }): Group => ({
  id,
  title,
  members: new Set(members.map((member) => member.id)),
});
