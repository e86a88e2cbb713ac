/** What the routes of the graph answer (`/openapi.json` describes them in full). */

import { ApiError, request, segment } from "../../lib/api.ts";
import type { PathStep as HitStep } from "../../lib/types.ts";

export const NODE_KINDS = ["document", "chunk", "entity", "hand_made"] as const;
export type NodeKind = (typeof NODE_KINDS)[number];

/** Edge kinds as people read them, in the order of the legend. */
export const EDGE_KINDS = {
  states: "states",
  mentions: "mentions",
  about: "is about",
  links_to: "links to",
  similar_to: "similar to",
  related_to: "related to",
  next_chunk: "next chunk",
  has_chunk: "has chunk",
  hand_made: "made by people",
  /** Not of `/v1/graph`: entities that chunks mention together, as `/v1/entities/{id}` counts them. */
  together: "mentioned together",
  /** Not of `/v1/graph`: a step of a hit's path that no edge stands for. */
  step: "step without an edge",
} as const;
export type EdgeKind = keyof typeof EDGE_KINDS;

export interface GraphNode {
  id: string;
  kind: NodeKind;
  label: string;
  collection: string | null;
  document_id: string | null;
  type: string | null;
}

export interface GraphEdge {
  from: string;
  to: string;
  kind: EdgeKind;
  weight: number;
  label: string | null;
}

export interface Subgraph {
  nodes: GraphNode[];
  edges: GraphEdge[];
  truncated: boolean;
}

export interface EntityRef {
  id: string | null;
  label: string;
  type: string | null;
}

export interface Evidence {
  sentence: string | null;
  chunk_id: string;
  document_id: string;
  title: string;
  position: string | null;
}

export interface Statement {
  subject: EntityRef;
  predicate: string;
  object: EntityRef;
  further: { role: string; entity: EntityRef }[];
  strength: number;
  stated: number;
  evidence: Evidence[];
}

export interface EntitySummary {
  id: string;
  collection: string;
  label: string;
  type: string;
  mentions: number;
}

export interface EntityDetail extends EntitySummary {
  definition: { text: string; source: Evidence } | null;
  aliases: { surface: string; mentions: number }[];
  statements: Statement[];
  documents: { document_id: string; title: string; mentions: number; about: boolean }[];
  document_count: number;
  neighbours: { entity: EntityRef; strength: number; predicates: string[]; shared_chunks: number }[];
}

export interface Chunk {
  title: string;
  section: string[];
  text: string;
  document_id: string;
  collection: string;
}

export interface PathStep {
  source: EntityRef;
  predicate: string;
  target: EntityRef;
  inverse: boolean;
  strength: number;
  evidence: Evidence | null;
}

export interface Paths {
  paths: { strength: number; steps: PathStep[] }[];
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
): Promise<Subgraph> => request("v1/graph", { query: { node, collection, depth, limit, kinds: kinds?.join() }, signal });

export const entity = (id: string, collection: string, signal?: AbortSignal): Promise<EntityDetail> =>
  request(`v1/entities/${segment(id)}`, { query: { collection, limit: 50 }, signal });

export const chunk = (id: string, signal?: AbortSignal): Promise<Chunk> =>
  request(`v1/chunks/${segment(id)}`, { signal });

export const paths = (from: string, to: string, collection: string): Promise<Paths> =>
  request("v1/paths", { query: { from, to, collection } });

export const entitiesBy = async (
  prefix: string,
  collection: string | null,
  limit: number,
  signal?: AbortSignal,
): Promise<EntitySummary[]> => {
  const page = await request<{ entities: EntitySummary[] }>("v1/entities", {
    query: { prefix, collection, limit },
    signal,
  });
  return page.entities;
};

/** The entities that chunks mention together with this one most often, as edges. Statements are no part of it: they are
 *  edges of `/v1/graph`. Throws ApiError. */
export async function together(id: string, collection: string, limit: number): Promise<Pick<Subgraph, "nodes" | "edges">> {
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

/** A hit as its retrieval keeps it. */
export interface RetrievedHit {
  rank: number;
  chunk_id: string;
  document_id: string;
  collection: string;
  /** Each channel's own rank. */
  ranks: Record<string, number>;
  path: HitStep[];
}

export interface FoundHit {
  query: string;
  hit: RetrievedHit;
}

/** The hit of a retrieval. Throws ApiError, also where the retrieval has no hit of this rank. */
export async function foundHit(retrieval: string, rank: number): Promise<FoundHit> {
  const { query, hits } = await request<{ query: string; hits: RetrievedHit[] }>(`v1/retrievals/${segment(retrieval)}`);
  const hit = hits.find((each) => each.rank === rank);
  if (hit === undefined) throw new ApiError(404, "No such hit", `The search “${query}” has no hit of rank ${rank}.`);
  return { query, hit };
}
