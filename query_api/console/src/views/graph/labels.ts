/** Labels that lie neither on each other nor on nodes: the most important first, each beside its node. */

export interface Label {
  text: string;
  /** The middle of what it belongs to, in pixels of the canvas. */
  x: number;
  y: number;
  /** Pixels from the middle that stay free; 0 lays the text across the middle itself. */
  radius: number;
  pixels: number;
  bold?: boolean;
  /** Of labels that would lie on each other the higher one is drawn. */
  priority: number;
  /** Whether it is drawn in any case. */
  forced: boolean;
}

export interface Placed {
  label: Label;
  left: number;
  baseline: number;
}

interface Size {
  width: number;
  height: number;
}

interface Box {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

export interface LabelStyle {
  font: string;
  text: string;
  surface: string;
}

const GAP = 3;
const HALO_PIXELS = 3;
const BASELINE_SHARE = 0.8; // of a line's height, above the baseline

/** Where each label goes that has room: right of its node, else left of it, below, or above, inside `bounds`, the pixels
 *  of the canvas. `width` measures a text in pixels. Those that must be drawn come first; where there is no room at all
 *  they cover nodes, or are on the right. */
export function place(labels: readonly Label[], bounds: Size, width: (label: Label) => number): Placed[] {
  const nodes = labels.filter(({ radius }) => radius > 0).map(boxOf);
  const taken: Box[] = [];
  const placed: Placed[] = [];
  const order = [...labels].sort(
    (a, b) => Number(b.forced) - Number(a.forced) || b.priority - a.priority || (a.text < b.text ? -1 : 1),
  );
  for (const label of order) {
    const boxes = beside(label, width(label));
    const free = boxes.filter((box) => within(box, bounds) && !taken.some((other) => overlap(box, other)));
    const clear = free.find((box) => !nodes.some((node) => overlap(box, node)));
    const box = clear ?? (label.forced ? (free[0] ?? boxes[0]) : undefined);
    if (box === undefined) continue;
    taken.push(box);
    placed.push({ label, left: box.left, baseline: box.top + BASELINE_SHARE * label.pixels });
  }
  return placed;
}

/** Each with a rim of the surface's colour, so that it is read above edges and nodes of any colour. */
export function drawLabels(
  context: CanvasRenderingContext2D,
  labels: readonly Label[],
  bounds: Size,
  style: LabelStyle,
): void {
  const face = ({ bold, pixels }: Label) => `${bold ? "600 " : ""}${pixels}px ${style.font}`;
  const placed = place(labels, bounds, (label) => {
    context.font = face(label);
    return context.measureText(label.text).width;
  });
  context.lineJoin = "round";
  context.lineWidth = HALO_PIXELS;
  context.strokeStyle = style.surface;
  context.fillStyle = style.text;
  for (const { label, left, baseline } of placed.reverse()) {
    context.font = face(label);
    context.strokeText(label.text, left, baseline);
    context.fillText(label.text, left, baseline);
  }
}

function beside({ x, y, radius, pixels }: Label, width: number): [Box, ...Box[]] {
  const at = (left: number, top: number): Box => ({ left, top, right: left + width, bottom: top + pixels });
  if (radius === 0) return [at(x - width / 2, y - pixels / 2)];
  const away = radius + 2 * GAP;
  return [
    at(x + away, y - pixels / 2),
    at(x - away - width, y - pixels / 2),
    at(x - width / 2, y + away),
    at(x - width / 2, y - away - pixels),
  ];
}

const boxOf = ({ x, y, radius }: Label): Box => ({ left: x - radius, top: y - radius, right: x + radius, bottom: y + radius });

const within = ({ left, top, right, bottom }: Box, { width, height }: Size): boolean =>
  left >= 0 && top >= 0 && right <= width && bottom <= height;

const overlap = (a: Box, b: Box): boolean =>
  a.left < b.right + GAP && b.left < a.right + GAP && a.top < b.bottom && b.top < a.bottom;
