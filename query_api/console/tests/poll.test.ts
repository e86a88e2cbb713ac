/** What is polled is asked for until it is done, and not while the page is hidden. */

import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";

import { poll } from "../src/lib/poll.ts";

const page = Object.assign(new EventTarget(), { hidden: false });
const settled = () => new Promise((resolve) => setImmediate(resolve));

async function pass(milliseconds: number): Promise<void> {
  await settled();
  mock.timers.tick(milliseconds);
  await settled();
}

function show(hidden: boolean): Promise<unknown> {
  page.hidden = hidden;
  page.dispatchEvent(new Event("visibilitychange"));
  return settled();
}

beforeEach(() => {
  Object.assign(globalThis, { document: page });
  page.hidden = false;
  mock.timers.enable({ apis: ["setTimeout"] });
});
afterEach(() => mock.timers.reset());

test("polling asks at once, then as often as it is told, until it is done", async () => {
  const waits = [700, 20, null];
  let asked = 0;
  const done = poll(async () => waits[asked++]!);
  assert.equal(asked, 1);
  await pass(699);
  assert.equal(asked, 1);
  await pass(1);
  assert.equal(asked, 2);
  await pass(20);
  assert.equal(asked, 3);
  await done;
});

test("a hidden page asks nothing, and at once when it is shown again", async () => {
  const stopped = new AbortController();
  let asked = 0;
  const done = poll(async () => (++asked, 100), stopped.signal);
  await settled();
  await show(true);
  await pass(1_000);
  assert.equal(asked, 1);
  await show(false);
  assert.equal(asked, 2);
  stopped.abort();
  await done;
  await show(false);
  await pass(1_000);
  assert.equal(asked, 2);
});

test("polling fails with what the question failed with", async () => {
  await assert.rejects(poll(async () => Promise.reject(new Error("away"))), { message: "away" });
});
