/** The part of the graph that is shown: nodes and edges that came from the routes, without those that were hidden. */

import { MultiDirectedGraph } from "graphology";

import type { EdgeKind, GraphEdge, GraphNode, NodeKind, Subgraph } from "./api.ts";

export interface NodeAttributes {
  label: string;
  kind: NodeKind;
  node: GraphNode;
  x: number;
  y: number;
  size: number;
}

export interface EdgeAttributes {
  kind: EdgeKind;
  edge: GraphEdge;
  label: string;
}

export type Drawn = MultiDirectedGraph<NodeAttributes, EdgeAttributes>;

const LABEL_CHARACTERS = 48;
const BASE_SIZE: Record<NodeKind, number> = { document: 6, entity: 5, hand_made: 6, chunk: 3.5 };
const LARGEST = 16;

export const shorten = (text: string): string =>
  text.length > LABEL_CHARACTERS ? `${text.slice(0, LABEL_CHARACTERS - 1).trimEnd()}…` : text;

export const edgeKey = (edge: GraphEdge): string =>
  JSON.stringify([edge.from, edge.to, edge.kind, edge.label ?? ""]);

/** A graphology graph that views draw. It is not reactive: whoever shows it reads `version`, which changes with it. */
export class GraphModel {
  readonly graph: Drawn = new MultiDirectedGraph();
  version = $state(0);
  /** Kinds of edges and nodes that are not drawn. */
  muted = $state.raw<ReadonlySet<EdgeKind>>(new Set());
  mutedNodes = $state.raw<ReadonlySet<NodeKind>>(new Set());
  /** Nodes and edges of the path that is shown. */
  highlighted = $state.raw<ReadonlySet<string>>(new Set());

  /** Adds what is not there yet; new nodes begin near `origin`. Returns how many nodes came. */
  add({ nodes, edges }: Pick<Subgraph, "nodes" | "edges">, origin?: string): number {
    const centre = origin !== undefined && this.graph.hasNode(origin) ? this.graph.getNodeAttributes(origin) : null;
    const before = this.graph.order;
    const radius = Math.sqrt(nodes.length + 1) * 4;
    for (const [index, node] of nodes.entries()) {
      if (this.graph.hasNode(node.id)) continue;
      // on a sunflower's spiral: no two at one place, which a layout could not part
      const angle = index * 2.399963;
      const distance = radius * Math.sqrt((index + 1) / (nodes.length + 1));
      this.graph.addNode(node.id, {
        label: shorten(node.label),
        kind: node.kind,
        node,
        x: (centre?.x ?? 0) + distance * Math.cos(angle),
        y: (centre?.y ?? 0) + distance * Math.sin(angle),
        size: BASE_SIZE[node.kind],
      });
    }
    for (const edge of edges) {
      const key = edgeKey(edge);
      if (this.graph.hasEdge(key) || !this.graph.hasNode(edge.from) || !this.graph.hasNode(edge.to)) continue;
      this.graph.addDirectedEdgeWithKey(key, edge.from, edge.to, { kind: edge.kind, edge, label: edge.label ?? "" });
    }
    this.#resize();
    return this.graph.order - before;
  }

  hide(id: string): void {
    if (this.graph.hasNode(id)) this.graph.dropNode(id);
    this.#resize();
  }

  clear(): void {
    this.graph.clear();
    this.highlighted = new Set();
    this.version += 1;
  }

  mute(kind: EdgeKind, muted: boolean): void {
    this.muted = changed(this.muted, kind, muted);
  }

  muteNodes(kind: NodeKind, muted: boolean): void {
    this.mutedNodes = changed(this.mutedNodes, kind, muted);
  }

  /** Whether the edge and both its ends are drawn. */
  isDrawn(edge: GraphEdge): boolean {
    const isOff = (id: string) => this.mutedNodes.has(this.graph.getNodeAttribute(id, "kind"));
    return !this.muted.has(edge.kind) && !isOff(edge.from) && !isOff(edge.to);
  }

  node(id: string | null): GraphNode | null {
    return id !== null && this.graph.hasNode(id) ? this.graph.getNodeAttribute(id, "node") : null;
  }

  get nodes(): GraphNode[] {
    return this.graph.mapNodes((_, attributes) => attributes.node);
  }

  get edges(): GraphEdge[] {
    return this.graph.mapEdges((_, attributes) => attributes.edge);
  }

  /** How many nodes of each kind there are. */
  get nodeCounts(): Map<NodeKind, number> {
    const counts = new Map<NodeKind, number>();
    this.graph.forEachNode((_, { kind }) => counts.set(kind, (counts.get(kind) ?? 0) + 1));
    return counts;
  }

  /** How many edges of each kind there are. */
  get counts(): Map<EdgeKind, number> {
    const counts = new Map<EdgeKind, number>();
    this.graph.forEachEdge((_, { kind }) => counts.set(kind, (counts.get(kind) ?? 0) + 1));
    return counts;
  }

  /** Nodes with many edges are larger. */
  #resize(): void {
    this.graph.updateEachNodeAttributes((id, attributes) => ({
      ...attributes,
      size: Math.min(LARGEST, BASE_SIZE[attributes.kind] + 1.4 * Math.log2(1 + this.graph.degree(id))),
    }));
    this.version += 1;
  }
}

function changed<Kind>(kinds: ReadonlySet<Kind>, kind: Kind, isIn: boolean): ReadonlySet<Kind> {
  const copy = new Set(kinds);
  if (isIn) copy.add(kind);
  else copy.delete(kind);
  return copy;
}
