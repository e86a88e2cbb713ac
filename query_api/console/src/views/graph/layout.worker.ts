/** Lays a graph out in a thread of its own, some iterations at a time, until its nodes hardly move any more. */

import { DirectedGraph } from "graphology";
import forceAtlas2 from "graphology-layout-forceatlas2";
import defaults from "graphology-layout-forceatlas2/defaults.js";
import helpers from "graphology-layout-forceatlas2/helpers.js";
import iterate from "graphology-layout-forceatlas2/iterate.js";

export interface LayoutOrder {
  run: number;
  /** x, y of each node. */
  places: Float32Array;
  /** Indexes of the ends of each edge. */
  edges: Uint32Array;
}

export interface LayoutRound {
  run: number;
  places: Float32Array;
  done: boolean;
}

const BARNES_HUT_FROM = 400;
const ROUND_MS = 30;
const STEPS = 600; // then it is as good as it gets
const LONGEST_MS = 30_000;
const STILL = 0.0002; // of the picture's width, that the mean node moves by in an iteration
const STILL_ROUNDS = 3;
const NUMBERS_A_NODE = 10;
let running = 0;
let goOn: () => void = () => undefined;

/** An order begins a layout, `next` asks for its next round, null ends it. */
self.onmessage = ({ data }: MessageEvent<LayoutOrder | "next" | null>) => {
  if (data !== "next") running = data?.run ?? 0;
  goOn();
  if (data !== null && data !== "next") void layOut(data);
};

async function layOut({ run, places, edges }: LayoutOrder): Promise<void> {
  const count = places.length / 2;
  const graph = new DirectedGraph();
  for (let at = 0; at < count; at += 1) graph.addNode(at, { x: places[2 * at], y: places[2 * at + 1] });
  for (let at = 0; at < edges.length; at += 2) graph.mergeEdge(edges[at], edges[at + 1]);
  const matrices = helpers.graphToByteArrays(graph, () => 1);
  const settings = {
    ...defaults,
    ...forceAtlas2.inferSettings(graph),
    barnesHutOptimize: count > BARNES_HUT_FROM,
    gravity: 0.6,
    scalingRatio: 12,
    slowDown: 4,
  };
  const end = performance.now() + LONGEST_MS;
  let before = places;
  let still = 0;
  for (let step = 0, done = false; !done && run === running; ) {
    const began = performance.now();
    const first = step;
    while (step < STEPS && performance.now() - began < ROUND_MS) {
      iterate(settings, matrices.nodes, matrices.edges);
      step += 1;
    }
    const moved = new Float32Array(2 * count);
    for (let at = 0; at < count; at += 1) {
      moved[2 * at] = matrices.nodes[NUMBERS_A_NODE * at]!;
      moved[2 * at + 1] = matrices.nodes[NUMBERS_A_NODE * at + 1]!;
    }
    still = meanShift(before, moved) / (step - first) < STILL ? still + 1 : 0;
    done = step >= STEPS || still >= STILL_ROUNDS || performance.now() > end;
    before = moved.slice();
    const round: LayoutRound = { run, places: moved, done };
    const asked = new Promise<void>((resolve) => (goOn = resolve));
    postMessage(round, { transfer: [moved.buffer] });
    await asked; // a page that draws slowly is not given more than it can show
  }
}

/** How far the mean node moved, as a share of the picture's width. */
function meanShift(before: Float32Array, after: Float32Array): number {
  let sum = 0;
  let [left, right] = [Infinity, -Infinity];
  for (let at = 0; at < after.length; at += 2) {
    sum += Math.hypot(after[at]! - before[at]!, after[at + 1]! - before[at + 1]!);
    left = Math.min(left, after[at]!);
    right = Math.max(right, after[at]!);
  }
  return right > left ? (2 * sum) / after.length / (right - left) : 0;
}
