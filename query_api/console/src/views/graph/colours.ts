/** The colours of nodes and edges, from the design tokens of the theme that is shown. */

import { EDGE_KINDS, NODE_KINDS, type EdgeKind, type NodeKind } from "./api.ts";

export interface Colours {
  node: Record<NodeKind, string>;
  edge: Record<EdgeKind, string>;
  text: string;
  surface: string;
  faint: string;
  accent: string;
  path: string;
  font: string;
}

export const edgeToken = (kind: EdgeKind): string =>
  kind === "step" ? "--quiet" : `--edge-${kind.replaceAll("_", "-")}`;
export const nodeToken = (kind: NodeKind): string => `--node-${kind.replaceAll("_", "-")}`;

export function colours(): Colours {
  const style = getComputedStyle(document.documentElement);
  const value = (token: string) => style.getPropertyValue(token).trim();
  const each = <Kind extends string>(kinds: readonly Kind[], token: (kind: Kind) => string) =>
    Object.fromEntries(kinds.map((kind) => [kind, value(token(kind))])) as Record<Kind, string>;
  return {
    node: each(NODE_KINDS, nodeToken),
    edge: each(Object.keys(EDGE_KINDS) as EdgeKind[], edgeToken),
    text: value("--text"),
    surface: value("--surface"),
    faint: value("--border"),
    accent: value("--accent"),
    path: value("--text"), // nothing else in a picture is of this colour
    font: value("--font"),
  };
}

/** A colour between two of the tokens, `#rrggbb`: `share` of the first. */
export function mixed(colour: string, other: string, share: number): string {
  const channels = [1, 3, 5].map((at) => {
    const [one, two] = [colour, other].map((each) => Number.parseInt(each.slice(at, at + 2), 16));
    return Math.round(share * one! + (1 - share) * two!);
  });
  return `#${channels.map((channel) => channel.toString(16).padStart(2, "0")).join("")}`;
}
