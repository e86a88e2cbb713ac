/** The force-directed layout of a model (ForceAtlas2, Jacomy et al. 2014), computed by a worker. */

import type { LayoutOrder } from "./layout.worker.ts";
import type { GraphModel } from "./model.svelte.ts";

interface Places {
  ids: string[];
  places: Float32Array;
  done: boolean;
}

export class Layout {
  #worker = new Worker(new URL("./layout.worker.ts", import.meta.url), { type: "module" });
  #model: GraphModel;
  /** A node that somebody drags: it stays where it is put. */
  held: string | null = null;

  constructor(model: GraphModel, onRunning: (running: boolean) => void) {
    this.#model = model;
    this.#worker.onmessage = ({ data }: MessageEvent<Places>) => {
      this.#apply(data);
      if (data.done) onRunning(false);
    };
  }

  start(): void {
    const { graph } = this.#model;
    const ids = graph.nodes();
    const index = new Map(ids.map((id, at) => [id, at]));
    const places = new Float32Array(2 * ids.length);
    ids.forEach((id, at) => places.set([graph.getNodeAttribute(id, "x"), graph.getNodeAttribute(id, "y")], 2 * at));
    const edges = new Uint32Array(2 * graph.size);
    let at = 0;
    graph.forEachEdge((_, __, source, target) => {
      edges.set([index.get(source)!, index.get(target)!], at);
      at += 2;
    });
    const order: LayoutOrder = { ids, places, edges };
    this.#worker.postMessage(order, [places.buffer, edges.buffer]);
  }

  stop(): void {
    this.#worker.postMessage(null);
  }

  end(): void {
    this.#worker.terminate();
  }

  #apply({ ids, places }: Places): void {
    const { graph } = this.#model;
    const at = new Map(ids.map((id, index) => [id, index]));
    graph.updateEachNodeAttributes(
      (id, attributes) => {
        const index = at.get(id);
        if (index === undefined || id === this.held) return attributes;
        return { ...attributes, x: places[2 * index]!, y: places[2 * index + 1]! };
      },
      { attributes: ["x", "y"] },
    );
  }
}
