/** The parts of the library that its own types leave out: one iteration over matrices, which keeps its momentum from one
 *  round to the next. */

declare module "graphology-layout-forceatlas2/iterate.js" {
  import type { ForceAtlas2Settings } from "graphology-layout-forceatlas2";

  export default function iterate(settings: ForceAtlas2Settings, nodes: Float32Array, edges: Float32Array): void;
}

declare module "graphology-layout-forceatlas2/helpers.js" {
  import type { AbstractGraph } from "graphology-types";

  const helpers: {
    /** Ten numbers a node, of which the first two are x and y; three an edge. */
    graphToByteArrays(graph: AbstractGraph, weight: (edge: string) => number): { nodes: Float32Array; edges: Float32Array };
  };
  export default helpers;
}

declare module "graphology-layout-forceatlas2/defaults.js" {
  import type { ForceAtlas2Settings } from "graphology-layout-forceatlas2";

  const defaults: ForceAtlas2Settings;
  export default defaults;
}
