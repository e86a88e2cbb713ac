/** The part of the graph that is shown, as GraphML (Brandes et al. 2001). */

import type { GraphModel } from "./model.svelte.ts";

const NAMESPACE = "http://graphml.graphdrawing.org/xmlns";
const NOT_XML = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g;
const FIELDS = {
  node: { label: "string", kind: "string", collection: "string", document: "string" },
  edge: { kind: "string", label: "string", weight: "double" },
} as const;

export function graphml(model: GraphModel): string {
  const xml = document.implementation.createDocument(NAMESPACE, "graphml");
  const append = (parent: Element, tag: string, attributes: Record<string, string>): Element => {
    const element = xml.createElementNS(NAMESPACE, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    parent.append(element);
    return element;
  };
  const data = (parent: Element, prefix: string, values: Record<string, string | number | null>) => {
    for (const [name, value] of Object.entries(values)) {
      if (value !== null) append(parent, "data", { key: `${prefix}.${name}` }).textContent = String(value).replace(NOT_XML, "");
    }
  };
  for (const [of, fields] of Object.entries(FIELDS)) {
    for (const [name, type] of Object.entries(fields)) {
      append(xml.documentElement, "key", { id: `${of}.${name}`, for: of, "attr.name": name, "attr.type": type });
    }
  }
  const graph = append(xml.documentElement, "graph", { edgedefault: "directed" });
  for (const { id, label, kind, collection, document_id: document } of model.nodes) {
    data(append(graph, "node", { id }), "node", { label, kind, collection, document });
  }
  for (const { from, to, kind, label, weight } of model.edges) {
    data(append(graph, "edge", { source: from, target: to }), "edge", { kind, label, weight });
  }
  return new XMLSerializer().serializeToString(xml);
}
