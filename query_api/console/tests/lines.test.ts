/** Lines come whole, however the stream is cut. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { jsonLines } from "../src/lib/lines.ts";

const LINES = '{"a":"ä"}\n\n{"a":2}\n{"a":3}';

async function read(size: number): Promise<unknown[]> {
  const bytes = new TextEncoder().encode(LINES);
  const parts = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) => bytes.slice(at * size, (at + 1) * size));
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
    start(stream) {
      for (const part of parts) stream.enqueue(part);
      stream.close();
    },
  });
  const found = [];
  for await (const each of jsonLines(body)) found.push(each);
  return found;
}

test("lines are whole, also across pieces and inside a character, and the last needs no end", async () => {
  for (const size of [1, 7, 100]) assert.deepEqual(await read(size), [{ a: "ä" }, { a: 2 }, { a: 3 }]);
});
