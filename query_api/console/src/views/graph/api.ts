/** Requests to the routes of the graph. */

import { ApiError, request, segment } from "../../lib/api.ts";
import type {
  ChunkDetail, EntityDetail, EntityPage, EntityPaths, EntitySummary, GraphEdge as StoredEdge, GraphNode, Retrieval, RetrievedHit,
} from "../../lib/types.ts"; // prettier-ignore

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

/** Part of a collection's graph around a node. Throws ApiError. */
export const subgraph = (
  node: string,
  collection: string,
  { depth = 1, limit = 200, kinds, signal }: SubgraphOptions = {},
): Promise<Part> =>
  request("v1/graph", { query: { node, collection, depth, limit, kinds: kinds?.join() }, signal });

export const entity = (id: string, collection: string, signal?: AbortSignal): Promise<EntityDetail> =>
  request(`v1/entities/${segment(id)}`, { query: { collection, limit: 50 }, signal });

export const chunk = (id: string, signal?: AbortSignal): Promise<ChunkDetail> =>
  request(`v1/chunks/${segment(id)}`, { signal });

export const paths = (from: string, to: string, collection: string): Promise<EntityPaths> =>
  request("v1/paths", { query: { from, to, collection } });

export const entitiesBy = async (
  prefix: string,
  collection: string | null,
  limit: number,
  signal?: AbortSignal,
): Promise<EntitySummary[]> => {
  const page = await request<EntityPage>("v1/entities", {
    query: { prefix, collection, limit },
    signal,
  });
  return page.entities;
};

/** The entities that chunks mention together with this one most often, as edges. Statements are not part of it: they are
 *  edges of `/v1/graph`. Throws ApiError. */
export async function together(id: string, collection: string, limit: number): Promise<Part> {
  const { neighbours } = await request<EntityDetail>(`v1/entities/${segment(id)}`, { query: { collection, limit } });
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
  const { query, hits } = await request<Retrieval>(`v1/retrievals/${segment(retrieval)}`);
  const hit = hits.find((each) => each.rank === rank);
  if (hit === undefined) throw new ApiError(404, "No such hit", `The search “${query}” has no hit of rank ${rank}.`);
  return { query, hit };
}
