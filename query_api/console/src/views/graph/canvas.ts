/** What the ways of drawing a graph have in common. */

import type { GraphModel } from "./model.svelte.ts";

export interface CanvasProps {
  model: GraphModel;
  /** The node or edge that is looked at, by its id or key. */
  selected: string | null;
  /** Whether the nodes are being arranged. */
  running: boolean;
  onselect: (id: string | null) => void;
  onexpand: (id: string) => void;
  /** The node or edge under the pointer, null for none. */
  onhover: (id: string | null) => void;
}

/** What a drawn graph can be asked to do. */
export interface Canvas {
  /** Shows the node in the middle. */
  centre: (id: string) => void;
  /** Shows all that is drawn. */
  fit: () => void;
  savePicture?: (name: string) => Promise<void>;
}

/** From so many chunks on, their texts are shown for the node that is looked at alone: they would hide names. */
export const CHUNK_LABELS_UP_TO = 30;
export const CHUNK_LABEL_CHARACTERS = 28;
/** Of more edges none has an arrow's head, and not all of them are drawn in every frame. */
export const MANY_EDGES = 1_500;
/** In three dimensions each node is a body of its own: of more, those with the most edges are drawn. */
export const MAX_BODIES = 1_000;
