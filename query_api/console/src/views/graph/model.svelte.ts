/** The part of the graph that is shown: nodes and edges that came from the routes, without those that were hidden. */

import { MultiDirectedGraph } from "graphology";

import type { GraphNode } from "../../client/thalweg.ts";
import type { EdgeKind, GraphEdge, NodeKind, Part } from "./api.ts";

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

/** A community whose members are drawn in an outline of their own. */
export interface Group {
  id: string;
  title: string;
  members: ReadonlySet<string>;
}

export interface MarkedPath {
  /** As the legend calls it. */
  title: string;
  /** Ids of nodes and keys of edges. */
  marked: ReadonlySet<string>;
}

export type Drawn = MultiDirectedGraph<NodeAttributes, EdgeAttributes>;

/** What a page draws at most, and stays quick: where more comes, the edges of the least weight are left out. */
export const MAX_NODES = 5_000;
export const MAX_EDGES = 20_000;
const LABEL_CHARACTERS = 48;
const NOTHING: ReadonlySet<string> = new Set();
const BASE_SIZE: Record<NodeKind, number> = { document: 6, entity: 5, hand_made: 6, chunk: 3.5 };
const LARGEST = 16;
const ROOMY_UP_TO = 600; // nodes of their full size

export const shorten = (text: string, characters = LABEL_CHARACTERS): string =>
  text.length > characters ? `${text.slice(0, characters - 1).trimEnd()}…` : text;

export const edgeKey = (edge: GraphEdge): string =>
  JSON.stringify([edge.from, edge.to, edge.kind, edge.label ?? ""]);

/** A graphology graph that views draw. It is not reactive: views read `version`, which changes with it. */
export class GraphModel {
  readonly graph: Drawn = new MultiDirectedGraph();
  version = $state(0);
  /** Kinds of edges and nodes that are not drawn. */
  muted = $state.raw<ReadonlySet<EdgeKind>>(new Set());
  mutedNodes = $state.raw<ReadonlySet<NodeKind>>(new Set());
  /** How many nodes and edges came that are not drawn, for there are too many. */
  leftOut = $state.raw({ nodes: 0, edges: 0 });
  /** The path that is looked at, and what it is called; all else is drawn faintly. */
  path = $state.raw<MarkedPath | null>(null);
  pathShown = $state(true);
  /** Communities that are outlined. */
  groups = $state.raw<readonly Group[]>([]);

  /** Nodes and edges of the path that is shown. */
  get highlighted(): ReadonlySet<string> {
    return (this.pathShown && this.path?.marked) || NOTHING;
  }

  mark(path: MarkedPath | null): void {
    this.path = path;
    this.pathShown = true;
  }

  /** Makes the picture show this and nothing else; what is in both stays where it is. */
  replace(part: Part): void {
    const nodes = new Set(part.nodes.map(({ id }) => id));
    const edges = new Set(part.edges.map(edgeKey));
    for (const id of this.graph.nodes()) if (!nodes.has(id)) this.graph.dropNode(id);
    for (const key of this.graph.edges()) if (!edges.has(key)) this.graph.dropEdge(key);
    this.leftOut = { nodes: 0, edges: 0 };
    this.add(part);
  }

  /** Adds what is not there yet, up to the bounds, and brings the rest up to date; new nodes begin near `origin`, or where
   *  a neighbour is. Returns how many nodes came. */
  add({ nodes, edges }: Part, origin?: string): number {
    const centre = origin !== undefined && this.graph.hasNode(origin) ? this.graph.getNodeAttributes(origin) : null;
    const before = this.graph.order;
    const radius = Math.sqrt(nodes.length + 1) * 4;
    let nodesLeftOut = 0;
    for (const [index, node] of nodes.entries()) {
      if (this.graph.hasNode(node.id)) {
        if (isOther(this.graph.getNodeAttribute(node.id, "node"), node)) {
          this.graph.mergeNodeAttributes(node.id, { label: shorten(node.label), node });
        }
        continue;
      }
      if (this.graph.order >= MAX_NODES) {
        nodesLeftOut += 1;
        continue;
      }
      // on a sunflower's spiral: no two at one place, which a layout could not part
      const angle = index * 2.399963;
      const distance = radius * Math.sqrt((index + 1) / (nodes.length + 1));
      const near = centre ?? this.#neighbour(node.id, edges);
      this.graph.addNode(node.id, {
        label: shorten(node.label),
        kind: node.kind,
        node,
        x: (near?.x ?? 0) + distance * Math.cos(angle),
        y: (near?.y ?? 0) + distance * Math.sin(angle),
        size: BASE_SIZE[node.kind],
      });
    }
    const edgesLeftOut = this.#addEdges(edges);
    const { leftOut } = this;
    this.leftOut = { nodes: leftOut.nodes + nodesLeftOut, edges: leftOut.edges + edgesLeftOut };
    this.#resize();
    return this.graph.order - before;
  }

  #neighbour(id: string, edges: readonly GraphEdge[]): NodeAttributes | null {
    if (this.graph.order === 0 || this.graph.order > ROOMY_UP_TO) return null;
    const edge = edges.find(({ from, to }) => (from === id && this.graph.hasNode(to)) || (to === id && this.graph.hasNode(from)));
    return edge ? this.graph.getNodeAttributes(edge.from === id ? edge.to : edge.from) : null;
  }

  /** Those between nodes that are there. Returns how many had no room. */
  #addEdges(edges: readonly GraphEdge[]): number {
    const found = new Map<string, GraphEdge>();
    for (const edge of edges) {
      if (!this.graph.hasNode(edge.from) || !this.graph.hasNode(edge.to)) continue;
      const key = edgeKey(edge);
      if (!this.graph.hasEdge(key)) found.set(key, edge);
      else if (isOther(this.graph.getEdgeAttribute(key, "edge"), edge)) this.graph.setEdgeAttribute(key, "edge", edge);
    }
    const room = Math.max(0, MAX_EDGES - this.graph.size);
    let added = [...found];
    if (added.length > room) added = added.sort(([, a], [, b]) => b.weight - a.weight).slice(0, room);
    for (const [key, edge] of added) {
      this.graph.addDirectedEdgeWithKey(key, edge.from, edge.to, { kind: edge.kind, edge, label: edge.label ?? "" });
    }
    return found.size - added.length;
  }

  hide(id: string): void {
    if (this.graph.hasNode(id)) this.graph.dropNode(id);
    this.#resize();
  }

  clear(): void {
    this.graph.clear();
    this.path = null;
    this.groups = [];
    this.leftOut = { nodes: 0, edges: 0 };
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

  /** Nodes with many edges are larger, and those of a large graph smaller. */
  #resize(): void {
    const share = Math.min(1, Math.sqrt(ROOMY_UP_TO / Math.max(1, this.graph.order)));
    this.graph.forEachNode((id, attributes) => {
      const size = Math.min(LARGEST, BASE_SIZE[attributes.kind] + 1.4 * Math.log2(1 + this.graph.degree(id)));
      attributes.size = share * size;
    });
    this.version += 1;
  }
}

/** A large graph as it is drawn while it moves: its nodes, and of the edges that are drawn those of the most weight. Nodes
 *  have the same attributes in both: what moves in one moves in the other. */
export function sketch(model: GraphModel, edges: number): Drawn {
  const drawn: Drawn = new MultiDirectedGraph();
  model.graph.forEachNode((id, attributes) => drawn.addNode(id, attributes));
  const found = model.graph.mapEdges((key, attributes, from, to) => ({ key, attributes, from, to }));
  const heaviest = found
    .filter(({ attributes }) => model.isDrawn(attributes.edge))
    .sort((a, b) => b.attributes.edge.weight - a.attributes.edge.weight);
  for (const { key, attributes, from, to } of heaviest.slice(0, edges)) {
    drawn.addDirectedEdgeWithKey(key, from, to, attributes);
  }
  return drawn;
}

/** What is the same stays the same object, so that who shows it does not begin again. */
const isOther = (one: object, other: object): boolean => JSON.stringify(one) !== JSON.stringify(other);

function changed<Kind>(kinds: ReadonlySet<Kind>, kind: Kind, isIn: boolean): ReadonlySet<Kind> {
  const copy = new Set(kinds);
  if (isIn) copy.add(kind);
  else copy.delete(kind);
  return copy;
}
