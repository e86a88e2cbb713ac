/** Requests to the routes of the graph. */

import { ApiError, segment } from "../../client/thalweg.ts";
import { thalweg } from "../../lib/thalweg.ts";
import type {
  ChunkDetail, CommunityDetail, CommunityPage, EdgePage, EntityDetail, EntityPage, EntityPaths, GraphEdge as StoredEdge, GraphNode,
  HandMadeEdge, HandMadeNode, NamedNodePage, NodeDetail, Retrieval, RetrievedHit,
} from "../../client/types.ts"; // prettier-ignore

export type NodeKind = GraphNode["kind"];
export const NODE_KINDS = ["document", "chunk", "entity", "hand_made"] as const satisfies NodeKind[];

/** Edge kinds as people read them, in the order of the legend. */
export const EDGE_KINDS = {
  states: "states",
  mentions: "mentions",
  about: "explains",
  links_to: "links to",
  similar_to: "similar to",
  related_to: "related to",
  next_chunk: "next chunk",
  has_chunk: "has chunk",
  hand_made: "made by people",
  /** Not of `/v1/graph`: entities that chunks mention together, as `/v1/entities/{id}` counts them. */
  together: "mentioned together",
  /** Not of `/v1/graph`: a step of a hit's path that no edge represents. */
  step: "step without an edge",
} as const satisfies Record<StoredEdge["kind"], string> & Record<string, string>;
export type EdgeKind = keyof typeof EDGE_KINDS;
export type GraphEdge = Omit<StoredEdge, "kind"> & { kind: EdgeKind };

/** What is drawn. */
export interface Part {
  nodes: GraphNode[];
  edges: GraphEdge[];
  /** Whether the graph has more of it. */
  truncated?: boolean;
}

interface SubgraphOptions {
  depth?: number;
  /** Of nodes. */
  limit?: number;
  kinds?: EdgeKind[];
  signal?: AbortSignal;
}

/** Part of a collection's graph around a node, each fact once. Throws ApiError. */
export async function subgraph(
  node: string,
  collection: string,
  { depth = 1, limit = 200, kinds, signal }: SubgraphOptions = {},
): Promise<Part> {
  const query = { node, collection, depth, limit, kinds: kinds?.join() };
  return onceEach(await thalweg.request<Part>("v1/graph", { query, signal }));
}

/** Without a chunk's part in a fact whose end it mentions: the fact itself is an edge between its ends. */
export function onceEach(part: Part): Part {
  const mentioned = new Set(part.edges.filter(({ kind }) => kind === "mentions").map(({ from, to }) => JSON.stringify([from, to])));
  const isTwice = ({ kind, from, to }: GraphEdge) => kind === "states" && mentioned.has(JSON.stringify([from, to]));
  return { ...part, edges: part.edges.filter((edge) => !isTwice(edge)) };
}

export const entity = (id: string, collection: string, signal?: AbortSignal): Promise<EntityDetail> =>
  thalweg.request(`v1/entities/${segment(id)}`, { query: { collection, limit: 50 }, signal });

export const chunk = (id: string, signal?: AbortSignal): Promise<ChunkDetail> =>
  thalweg.request(`v1/chunks/${segment(id)}`, { signal });

/** All of a node that people made; null where it is gone. Throws ApiError. */
export const madeNode = async (id: string, collection: string, signal?: AbortSignal): Promise<HandMadeNode | null> =>
  (await thalweg.request<NodeDetail>(`v1/nodes/${segment(id)}`, { query: { collection, limit: 1 }, signal })).hand_made;

/** All of an edge that people made. It may name its ends in other words than the picture. Throws ApiError. */
export async function madeEdge({ from, to, label }: GraphEdge, collection: string, signal?: AbortSignal): Promise<HandMadeEdge | null> {
  const is = (end: string, node: string) => end === node || `${collection}/${end}` === node;
  const fit = ({ source, target }: HandMadeEdge) => Number(is(source, from)) + Number(is(target, to));
  const query = { collection, node: from, predicate: label, limit: 200 };
  const { edges } = await thalweg.request<EdgePage>("v1/edges", { query, signal });
  return edges.sort((a, b) => fit(b) - fit(a))[0] ?? null;
}

export const community = (id: string, limit: number): Promise<CommunityDetail> =>
  thalweg.request(`v1/communities/${segment(id)}`, { query: { limit } });

/** The largest communities of a level. Throws ApiError. */
export const communitiesOf = async (collection: string, level: string, limit: number): Promise<CommunityPage["communities"]> =>
  (await thalweg.request<CommunityPage>("v1/communities", { query: { collection, level, limit } })).communities;

export const paths = (from: string, to: string, collection: string): Promise<EntityPaths> =>
  thalweg.request("v1/paths", { query: { from, to, collection } });

/** What a picture can begin at. */
export interface Named {
  id: string;
  label: string;
  collection: string;
  /** Its type, and of an entity how often it is mentioned. */
  type: string;
  mentions: number | null;
}

/** Nodes that people made and entities of which a word begins so: those in the order of names, these the most salient
 *  first. Throws ApiError. */
export async function namedBy(prefix: string, collection: string | null, limit: number, signal?: AbortSignal): Promise<Named[]> {
  const [made, { entities }] = await Promise.all([
    thalweg.request<NamedNodePage>("v1/nodes", { query: { prefix, kind: "hand_made", collection, limit }, signal }),
    thalweg.request<EntityPage>("v1/entities", { query: { prefix, collection, limit }, signal }),
  ]);
  const nodes = made.nodes.map(({ id, label, collection: where, type }) => ({ id, label, collection: where ?? "", type: type ?? "", mentions: null }));
  return [...nodes, ...entities];
}

/** The entities that chunks mention together with this one most often, as edges. Statements are not part of it: they are
 *  edges of `/v1/graph`. Throws ApiError. */
export async function together(id: string, collection: string, limit: number): Promise<Part> {
  const { neighbours } = await thalweg.request<EntityDetail>(`v1/entities/${segment(id)}`, { query: { collection, limit } });
  const most = Math.max(1, ...neighbours.map(({ shared_chunks }) => shared_chunks));
  const nodes: GraphNode[] = [];
  const edges: GraphEdge[] = [];
  for (const { entity, shared_chunks } of neighbours) {
    if (entity.id === null) continue;
    nodes.push({ id: entity.id, kind: "entity", label: entity.label, collection, document_id: null, type: entity.type });
    if (shared_chunks > 0) {
      const label = `in ${shared_chunks} ${shared_chunks === 1 ? "chunk" : "chunks"}`;
      edges.push({ from: id, to: entity.id, kind: "together", weight: shared_chunks / most, label });
    }
  }
  return { nodes, edges };
}

export interface FoundHit {
  query: string;
  hit: RetrievedHit;
}

/** The hit of a retrieval. Throws ApiError, also where the retrieval has no hit of this rank. */
export async function foundHit(retrieval: string, rank: number): Promise<FoundHit> {
  const { query, hits } = await thalweg.request<Retrieval>(`v1/retrievals/${segment(retrieval)}`);
  const hit = hits.find((each) => each.rank === rank);
  if (hit === undefined) throw new ApiError(404, "No such hit", `The search “${query}” has no hit of rank ${rank}.`);
  return { query, hit };
}
