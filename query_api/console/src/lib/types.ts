/** What the routes answer, as far as the console reads it; the whole is in the service's /openapi.json. */

export interface Span {
  start: number;
  end: number;
}

export interface PathStep {
  from: string;
  edge: string;
  to: string;
  inverse: boolean;
  by: "question" | "graph" | "words";
  evidence: string | null;
  chunk_id: string | null;
  /** Ids in the graph; there is none of the question, nor in searches from before they were kept. */
  from_node?: string | null;
  to_node?: string | null;
}

export interface Source {
  topic: string;
  partition: number;
  offset: number;
  version: number | null;
}

/** A further passage of a hit's document. */
export interface HitPassage {
  passage_id: string;
  text: string;
  highlights: Span[];
  answer: Span | null;
  start: number;
  section: string[];
  page: number | null;
}

export interface Hit {
  rank: number;
  chunk_id: string;
  passage_id: string;
  document_id: string;
  collection: string;
  title: string;
  text: string;
  parent_text: string;
  highlights: Span[];
  answer: Span | null;
  start: number;
  end: number;
  parent_start: number;
  section: string[];
  page: number | null;
  uri: string | null;
  score: number;
  scores: Record<string, number>;
  ranks: Record<string, number>;
  confidence: number | null;
  likelihood: "likely" | "possible" | "unlikely" | null;
  unlikely: boolean;
  channels: string[];
  parts: Record<string, number>;
  matches: string[];
  path: PathStep[];
  community: { title: string; relevance: number } | null;
  passages: HitPassage[];
  /** How many other documents have the very text of this one. */
  copies: number;
  duplicates: { document_id: string; collection: string; passage_id: string; similarity: number }[];
  context_text: string | null;
  source: Source;
  metadata: Record<string, unknown>;
}

export interface Understanding {
  intent: string;
  names: { words: string; name: string; collection: string; node: string; title: string | null; others: number }[];
  fields: { words: string; fields: string[]; operator: string; value: string }[];
  period: { words: string; documents: number } | null;
  newest_first: boolean;
  parts: string[];
  decomposed: boolean;
}

export interface Meta {
  retrieval_id: string;
  query: string;
  mode: string;
  understanding: Understanding | null;
  snapshot: { generation: string; positions: string; as_of: string };
  budget_seconds: number;
  cached: boolean;
}

export interface Stage {
  name: string;
  seconds: number;
  candidates: number;
  error: string | null;
}

export interface Done {
  hits: number;
  timings: Record<string, number>;
  failed_channels: Record<string, string>;
  next_cursor: string | null;
  notes: string[];
}

export interface Collection {
  name: string;
  documents: number;
  passages: number;
  chunks: number;
}

export interface DocumentSummary {
  id: string;
  collection: string;
  title: string;
  uri: string | null;
  content_type: string;
  version: number | null;
  chunks: number;
  position: string;
  updated_at: string;
  metadata: Record<string, unknown>;
  stated_fields: string[];
  /** A newer record of it that could not be indexed: what is served is from before it. */
  newer_refused: { dead_letter: string; reason: string; reason_title: string; advice: string; at: string } | null;
}

export interface Passage {
  id: string;
  section: string[];
  start: number;
  end: number;
  text: string;
}

export interface DocumentDetail extends DocumentSummary {
  text: string;
  passages: Passage[];
}

export interface DocumentStatus {
  id: string;
  collection: string;
  status: "indexed" | "deleted" | "pending" | "superseded" | "dead_lettered" | "unknown";
  position: string | null;
  version: number | null;
  chunks: number;
  searchable: boolean;
  in_graph: boolean;
  final: boolean;
  message: string | null;
  reason_title: string | null;
  advice: string | null;
  notes: string[];
}
