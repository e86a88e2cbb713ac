/** The client against a server that answers as the service does, and that drops connections. */

import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";

import { ApiError, Thalweg, type Access, type Connection } from "../src/client/thalweg.ts";

type Answer = (response: ServerResponse, request: IncomingMessage, body: string) => void;

/** A client of a server that gives these answers one after another, and what it was asked. */
async function served(access: Access, ...answers: Answer[]) {
  const asked: { line: string; headers: IncomingMessage["headers"]; body: string }[] = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const part of request) body += part;
    asked.push({ line: `${request.method} ${request.url}`, headers: request.headers, body });
    const answer = answers.shift();
    if (answer) answer(response, request, body);
    else response.writeHead(500).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const close = () => (server.closeAllConnections(), server.close());
  return { client: new Thalweg({ url, ...access }), asked, [Symbol.dispose]: close };
}

const json = (body: unknown, status = 200, headers: Record<string, string> = {}): Answer => (response) =>
  response.writeHead(status, { "Content-Type": "application/json", ...headers }).end(JSON.stringify(body));
const frame = (seq: number, event: string, data: unknown) => `event: ${event}\nid: r_1.${seq}\ndata: ${JSON.stringify(data)}\n\n`;
const stream = (...frames: string[]): Answer => (response) =>
  response.writeHead(200, { "Content-Type": "text/event-stream" }).end(frames.join(""));
/** What it writes arrives, then the connection breaks. */
const cut = (...frames: string[]): Answer => (response) => {
  response.writeHead(200, { "Content-Type": "text/event-stream" }).write(frames.join(""));
  setTimeout(() => response.destroy(), 20);
};

async function all<T>(frames: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const each of frames) found.push(each);
  return found;
}

async function problem(asking: Promise<unknown>): Promise<ApiError> {
  const failure = await asking.then(() => assert.fail("nothing failed"), (error: unknown) => error);
  assert.ok(failure instanceof ApiError, String(failure));
  return failure;
}

test("a stream that breaks off goes on after the last frame that came, none missing and none twice", async () => {
  using service = await served(
    { key: "secret" },
    cut(frame(0, "meta", { query: "x" }), frame(1, "hit", { rank: 1 }), "event: hit\nid: r_1.2\nda"),
    json({ title: "Busy", detail: "Wait." }, 503),
    stream(frame(2, "hit", { rank: 2 }), frame(3, "done", { hits: 2 })),
  );
  const connections: Connection["state"][] = [];
  const events: string[] = [];
  for await (const { event, data } of service.client.search({ q: "x" }, { onConnection: ({ state }) => connections.push(state) })) {
    events.push(event === "hit" ? `hit ${data.rank}` : event);
  }
  assert.deepEqual(events, ["meta", "hit 1", "hit 2", "done"]);
  assert.deepEqual(connections, ["dropped", "dropped", "resumed"]);
  assert.deepEqual(service.asked.map(({ headers }) => headers["last-event-id"]), [undefined, "r_1.1", "r_1.1"]);
  for (const { line, headers, body } of service.asked) {
    assert.deepEqual([line, body], ["POST /v1/search", '{"q":"x"}']);
    assert.equal(headers.authorization, "Bearer secret");
    assert.equal(headers.accept, "text/event-stream");
  }
});

test("a stream that had all come when it broke off ends, and one that was forgotten says so", async () => {
  using ended = await served({}, cut(frame(0, "meta", {})), (response) => response.writeHead(204).end());
  assert.equal((await all(ended.client.search({ q: "x" }))).length, 1);
  using gone = await served({}, cut(frame(0, "meta", {})), stream(frame(0, "reset", { reason: "old" }), frame(1, "done", {})));
  assert.deepEqual((await all(gone.client.answer({ q: "x" }))).map(({ event }) => event), ["meta", "reset", "done"]);
});

test("a frame of an error, a refused question and a service that is not there are one kind of error", async () => {
  using failing = await served({}, stream(frame(0, "meta", {}), frame(1, "error", { title: "Failed", detail: "The store broke." })));
  const late = await problem(all(failing.client.search({ q: "x" })));
  assert.deepEqual([late.status, late.title, late.message, late.passes], [200, "Failed", "The store broke.", false]);
  assert.equal(failing.asked.length, 1);

  const body = { title: "Too many", detail: "Ask later.", reason: "queue", extra: 1 };
  using busy = await served({}, json(body, 429, { "Retry-After": "7" }));
  const refused = await problem(busy.client.answer({ q: "x" }).whole());
  assert.deepEqual([refused.status, refused.message, refused.reason, refused.retryAfterSeconds, refused.passes], [429, "Ask later.", "queue", 7, true]);
  assert.equal(refused.members["extra"], 1);

  using proxy = await served({}, (response) => response.writeHead(502).end("<h1>Bad gateway</h1>"));
  assert.equal((await problem(proxy.client.request("v1/status"))).message, "The service answered with status 502.");

  const away = new Thalweg({ url: "http://127.0.0.1:9" });
  assert.equal((await problem(all(away.search({ q: "x" })))).status, 0);
});

test("a stream that is given up ends with an AbortError and sends nothing more", async () => {
  using service = await served({}, cut(frame(0, "meta", {})));
  const controller = new AbortController();
  const asking = all(service.client.search({ q: "x" }, { signal: controller.signal, onConnection: () => controller.abort() }));
  await assert.rejects(asking, { name: "AbortError" });
  assert.equal(service.asked.length, 1);
});

test("a refused key is asked for again, with the key that was refused", async () => {
  let key: string | null = "old";
  const refused: (string | null)[] = [];
  const onUnauthorized = async (sent: string | null) => {
    refused.push(sent);
    key = sent === "old" ? "new" : null;
    return key !== null;
  };
  using service = await served({ key: () => key, onUnauthorized }, json({}, 401), json({ version: "1" }), json({}, 401));
  await service.client.request("v1/status");
  assert.equal((await problem(service.client.request("v1/status"))).status, 401);
  assert.deepEqual(refused, ["old", "new"]);
  assert.deepEqual(service.asked.map(({ headers }) => headers.authorization), ["Bearer old", "Bearer new", "Bearer new"]);
});

test("documents are put, followed, waited for and deleted by their ids, whatever these hold", async () => {
  using service = await served(
    {},
    json({ token: "0:7" }, 202),
    json({ token: "0:8" }, 202),
    stream(frame(0, "status", { status: "pending" }), frame(1, "done", { status: "indexed" })),
    json({ edges: [] }),
    json({ token: "0:9" }, 202),
  );
  const { documents } = service.client;
  await documents.put({ id: "a/b ?.md", content: "Text." });
  await documents.putFile(new File(["Text."], "a.txt"), { collection: "rivers" });
  const steps = await all(documents.status("a/b ?.md", { collection: "rivers", token: "0:7" }));
  assert.deepEqual(steps.map(({ data }) => data.status), ["pending", "indexed"]);
  await service.client.wait("0:7", 5);
  assert.equal((await documents.delete("a/b ?.md", "rivers")).token, "0:9");
  assert.deepEqual(service.asked.map(({ line }) => line), [
    "POST /v1/documents",
    "POST /v1/documents",
    "GET /v1/documents/a%2Fb%20%3F.md/status?collection=rivers&position=0%3A7",
    "GET /v1/edges?limit=1&after=0%3A7&wait_seconds=5",
    "DELETE /v1/documents/a%2Fb%20%3F.md?collection=rivers",
  ]);
  assert.match(service.asked[1]!.body, /name="id"\r\n\r\na\.txt\r\n[^]*name="file"; filename="a\.txt"/);
});

test("conversations are made, listed, renamed, deleted and asked in", async () => {
  using service = await served(
    {},
    json({ id: "c/1" }, 201),
    json({ conversations: [], next_cursor: null }),
    json({ messages: [] }),
    json({ title: "Floods" }),
    json({ answer: { text: "It floods. [1]" } }),
    (response) => response.writeHead(204).end(),
    json({ title: "Not there", detail: "There is no such conversation." }, 404),
  );
  const { client } = service;
  const { id } = await client.conversations.create({ collection: "rivers" });
  await client.conversations.list({ limit: 5 });
  await client.conversations.get(id, { cursor: "x" });
  await client.conversations.rename(id, "Floods");
  assert.equal((await client.answer({ q: "x", conversation: id }).whole()).answer?.text, "It floods. [1]");
  assert.equal(await client.conversations.delete(id), undefined);
  assert.equal((await problem(client.conversations.get(id))).status, 404);
  assert.deepEqual(service.asked.map(({ line, body }) => `${line} ${body}`.trim()), [
    'POST /v1/conversations {"collection":"rivers"}',
    "GET /v1/conversations?limit=5",
    "GET /v1/conversations/c%2F1?cursor=x",
    'PATCH /v1/conversations/c%2F1 {"title":"Floods"}',
    'POST /v1/answers {"q":"x","conversation":"c/1"}',
    "DELETE /v1/conversations/c%2F1",
    "GET /v1/conversations/c%2F1",
  ]);
});
