/** What the routes answer, by the names of the service's OpenAPI document; by hand, what that leaves open. */

import type { PathEdge, RetrievalDetail, RetrievedHitShown } from "./openapi.d.ts";

export type * from "./openapi.d.ts";

/** A step of the path to a hit. Retrievals keep steps without what is null. */
export type HitStep = Omit<PathEdge, "from_node" | "to_node"> & Partial<Pick<PathEdge, "from_node" | "to_node">>;

/** A hit as its retrieval keeps it. */
export type RetrievedHit = Pick<RetrievedHitShown, "rank" | "chunk_id" | "document_id" | "collection" | "ranks"> & { path: HitStep[] };
export type Retrieval = Omit<RetrievalDetail, "hits"> & { hits: RetrievedHit[] };
