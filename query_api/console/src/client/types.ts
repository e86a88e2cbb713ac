/** What the routes take and answer, by the names of the service's OpenAPI document; by hand, what that leaves open. */

import type {
  AnswerCitation, AnswerDelta, AnswerSubgraph, DocumentStatus, Done, Hit, Meta, PathEdge, Research, ResearchStep, Reset,
  RetrievalDetail, RetrievedHitShown, Stage,
} from "./openapi.d.ts"; // prettier-ignore

export type * from "./openapi.d.ts";

export interface Frame {
  event: string;
  data: unknown;
}

/** Of a search, in their order; after `reset` all of them come again. */
export type SearchFrame =
  | { event: "meta"; data: Meta }
  | { event: "stage"; data: Stage }
  | { event: "hit"; data: Hit }
  | { event: "answer.citation"; data: AnswerCitation }
  | { event: "answer.delta"; data: AnswerDelta }
  | { event: "subgraph"; data: AnswerSubgraph }
  | { event: "done"; data: Done }
  | { event: "reset"; data: Reset };

/** Of a research, in their order; after a dropped connection it begins again, with step 1. */
export type ResearchFrame =
  | { event: "step"; data: ResearchStep }
  | { event: "answer.citation"; data: AnswerCitation }
  | { event: "answer.delta"; data: AnswerDelta }
  | { event: "done"; data: Research };

/** Of a write that is followed: the status after each step, the last one final. */
export type StatusFrame = { event: "status" | "done"; data: DocumentStatus };

/** A document as it is published (docs/ingestion.md). */
export interface Envelope {
  id: string;
  collection?: string;
  title?: string;
  content?: string;
  content_base64?: string;
  content_type?: string;
  uri?: string;
  metadata?: Record<string, unknown>;
  version?: number;
  links?: unknown[];
}

/** A step of the path to a hit. Retrievals keep steps without what is null. */
export type HitStep = Omit<PathEdge, "from_node" | "to_node"> & Partial<Pick<PathEdge, "from_node" | "to_node">>;

/** A hit as its retrieval keeps it. */
export type RetrievedHit = Pick<RetrievedHitShown, "rank" | "chunk_id" | "document_id" | "collection" | "ranks"> & { path: HitStep[] };
export type Retrieval = Omit<RetrievalDetail, "hits"> & { hits: RetrievedHit[] };
