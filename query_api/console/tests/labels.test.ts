/** Labels do not lie on each other, and the more important one is drawn. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { place, type Label } from "../src/views/graph/labels.ts";

const label = (text: string, x: number, y: number, rest: Partial<Label> = {}): Label => ({
  text, x, y, radius: 5, pixels: 12, priority: 1, forced: false, ...rest,
}); // prettier-ignore
const width = ({ text }: Label) => 7 * text.length;
const bounds = { width: 800, height: 600 };
const texts = (labels: Label[]) => place(labels, bounds, width).map((each) => each.label.text);

test("a label stands right of its node, or where there is room", () => {
  const [first, second] = place([label("first", 100, 100, { priority: 2 }), label("second", 85, 104)], bounds, width);
  assert.ok(first!.left > 100);
  assert.ok(second!.left + width(second!.label) < 85, "on the left, for on its right is the first node");
});

test("of many at one place a few are drawn, the most important ones", () => {
  const labels = Array.from({ length: 50 }, (_, at) => label(`node ${at}`, 100, 100, { priority: at }));
  const drawn = texts(labels);
  assert.ok(drawn.length <= 4);
  assert.equal(drawn[0], "node 49");
});

test("a label lies on no node, and not beyond the edge of the canvas", () => {
  const [node] = place([label("a long name", 100, 100, { priority: 2 }), label("", 140, 100)], bounds, width);
  assert.ok(node!.left + width(node!.label) < 100, "on the right is another node");
  const [last] = place([label("a long name", 790, 300)], bounds, width);
  assert.ok(last!.left + width(last!.label) <= 790);
});

test("what must be drawn is drawn, whatever else there is", () => {
  const forced = Array.from({ length: 6 }, (_, at) => label(`chosen ${at}`, 100, 100, { forced: true }));
  const drawn = texts([label("large", 100, 100, { priority: 99 }), ...forced]);
  assert.equal(drawn.filter((text) => text.startsWith("chosen")).length, 6);
});
