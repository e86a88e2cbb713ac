/** Lays a graph out in a thread of its own, some iterations at a time, so that the page stays responsive. */

import { DirectedGraph } from "graphology";
import forceAtlas2 from "graphology-layout-forceatlas2";

export interface LayoutOrder {
  ids: string[];
  /** x, y of each node. */
  places: Float32Array;
  /** Indexes of the ends of each edge. */
  edges: Uint32Array;
}

const BARNES_HUT_FROM = 400;
const ROUND_MS = 30;
const STEPS = 600; // then it is as good as it gets
let running = 0;

self.onmessage = ({ data }: MessageEvent<LayoutOrder | null>) => {
  running += 1;
  if (data !== null) void layOut(data, running);
};

async function layOut({ ids, places, edges }: LayoutOrder, run: number): Promise<void> {
  const graph = new DirectedGraph();
  ids.forEach((_, index) => graph.addNode(index, { x: places[2 * index], y: places[2 * index + 1] }));
  for (let at = 0; at < edges.length; at += 2) graph.mergeEdge(edges[at], edges[at + 1]);
  const settings = {
    ...forceAtlas2.inferSettings(graph),
    barnesHutOptimize: ids.length > BARNES_HUT_FROM,
    gravity: 0.6,
    scalingRatio: 12,
    slowDown: 4,
  };
  for (let step = 0; step < STEPS && run === running; ) {
    const began = performance.now();
    while (step < STEPS && performance.now() - began < ROUND_MS) {
      forceAtlas2.assign(graph, { iterations: 2, settings });
      step += 2;
    }
    const moved = new Float32Array(2 * ids.length);
    ids.forEach((_, index) => {
      moved[2 * index] = graph.getNodeAttribute(index, "x") as number;
      moved[2 * index + 1] = graph.getNodeAttribute(index, "y") as number;
    });
    postMessage({ ids, places: moved, done: step >= STEPS }, { transfer: [moved.buffer] });
    await new Promise((resolve) => setTimeout(resolve)); // lets an order to stop come in
  }
}
