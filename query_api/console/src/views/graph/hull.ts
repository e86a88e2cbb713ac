/** Outlines around the members of communities. */

export interface Point {
  x: number;
  y: number;
}

/** The corners of the smallest convex shape that holds the points, anticlockwise (Andrew 1979: monotone chain). */
export function hull(points: readonly Point[]): Point[] {
  const sorted = [...points].sort((a, b) => a.x - b.x || a.y - b.y);
  if (sorted.length < 3) return sorted;
  const half = (along: readonly Point[]): Point[] => {
    const kept: Point[] = [];
    for (const point of along) {
      while (kept.length > 1 && turn(kept.at(-2)!, kept.at(-1)!, point) <= 0) kept.pop();
      kept.push(point);
    }
    return kept.slice(0, -1);
  };
  return [...half(sorted), ...half(sorted.reverse())];
}

const turn = (o: Point, a: Point, b: Point): number => (a.x - o.x) * (b.y - o.y) - (a.y - o.y) * (b.x - o.x);

/** Fills the shape around the points, `margin` pixels wider than they are. */
export function fillAround(context: CanvasRenderingContext2D, points: readonly Point[], margin: number, colour: string): void {
  const corners = hull(points);
  context.beginPath();
  for (const { x, y } of corners) context.lineTo(x, y);
  context.closePath();
  context.lineJoin = context.lineCap = "round";
  context.lineWidth = 2 * margin;
  context.fillStyle = context.strokeStyle = colour;
  context.fill();
  context.stroke();
}
