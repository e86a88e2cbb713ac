/** The force-directed layout of a graph (ForceAtlas2, Jacomy et al. 2014): a worker computes it in rounds, and the nodes
 *  glide from one round to the next, for rounds of a large graph are further apart than frames. */

import type { LayoutOrder, LayoutRound } from "./layout.worker.ts";
import type { Drawn, NodeAttributes } from "./model.svelte.ts";

interface Glide {
  from: Float32Array;
  to: Float32Array;
  began: number;
  ms: number;
  asked: boolean;
  done: boolean;
}

const LONGEST_GLIDE_MS = 600;
const ASKED_AT = 0.5; // of a glide: the worker rests for the first half, and leaves the processor to who draws

export class Layout {
  #worker = new Worker(new URL("./layout.worker.ts", import.meta.url), { type: "module" });
  #run = 0;
  #nodes: { id: string; attributes: NodeAttributes }[] = [];
  #glide: Glide | null = null;
  #frame = 0;
  /** When the round was asked for that comes next. */
  #asked = 0;
  #onMoved: () => void;
  #onDone: () => void;
  /** A node that somebody drags: it stays where it is put. */
  held: string | null = null;

  /** `onMoved` is called when the attributes x and y of the nodes have changed, of which the graph gives no notice. */
  constructor(onMoved: () => void, onDone: () => void) {
    this.#onMoved = onMoved;
    this.#onDone = onDone;
    this.#worker.onmessage = ({ data }: MessageEvent<LayoutRound>) => this.#take(data);
  }

  start(graph: Drawn): void {
    this.stop();
    this.#run += 1;
    this.#asked = performance.now();
    this.#nodes = graph.mapNodes((id, attributes) => ({ id, attributes }));
    const index = new Map(this.#nodes.map(({ id }, at) => [id, at]));
    const edges = new Uint32Array(2 * graph.size);
    let at = 0;
    graph.forEachEdge((_, __, source, target) => {
      edges[at++] = index.get(source)!;
      edges[at++] = index.get(target)!;
    });
    const order: LayoutOrder = { run: this.#run, places: this.#places(), edges };
    this.#worker.postMessage(order, [order.places.buffer, edges.buffer]);
  }

  stop(): void {
    this.#worker.postMessage(null);
    this.#run += 1; // what is under way is not heard
    this.#glide = null;
    cancelAnimationFrame(this.#frame);
  }

  end(): void {
    this.stop();
    this.#worker.terminate();
  }

  #take({ run, places, done }: LayoutRound): void {
    if (run !== this.#run) return;
    const now = performance.now();
    const ms = Math.min((now - this.#asked) / (1 - ASKED_AT), LONGEST_GLIDE_MS); // until the next round will have come
    this.#glide = { from: this.#places(), to: places, began: now, ms, asked: done, done };
    cancelAnimationFrame(this.#frame);
    this.#frame = requestAnimationFrame(() => this.#move());
  }

  #move(): void {
    if (this.#glide === null) return;
    const { from, to, began, ms, done } = this.#glide;
    const now = performance.now();
    const share = Math.min(1, (now - began) / ms);
    if (share >= ASKED_AT && !this.#glide.asked) {
      this.#glide.asked = true;
      this.#asked = now;
      this.#worker.postMessage("next");
    }
    for (const [at, { id, attributes }] of this.#nodes.entries()) {
      if (id === this.held) continue;
      attributes.x = from[2 * at]! + share * (to[2 * at]! - from[2 * at]!);
      attributes.y = from[2 * at + 1]! + share * (to[2 * at + 1]! - from[2 * at + 1]!);
    }
    this.#onMoved();
    if (share < 1) this.#frame = requestAnimationFrame(() => this.#move());
    else {
      this.#glide = null;
      if (done) this.#onDone();
    }
  }

  #places(): Float32Array {
    const places = new Float32Array(2 * this.#nodes.length);
    for (const [at, { attributes }] of this.#nodes.entries()) {
      places[2 * at] = attributes.x;
      places[2 * at + 1] = attributes.y;
    }
    return places;
  }
}
