/** The client of a Thalweg service, for pages and for Node: `new Thalweg({ url, key })`. The console is made with it. */

import { Requests, segment, type Access, type Options } from "./requests.ts";
import { Answered, type Following } from "./stream.ts";
import type {
  AnswerRequest, Conversation, ConversationPage, ConversationSummary, DocumentAccepted, DocumentDetail, DocumentStatus, Envelope, NewConversation, Research, ResearchFrame,
  ResearchRequest, SearchAnswer, SearchFrame, SearchRequest, StatusFrame, WriteAccepted,
} from "./types.ts"; // prettier-ignore

export { ApiError, asApiError, isAbort } from "./problem.ts";
export type { Parameters } from "./query.ts";
export { segment, type Access, type Options } from "./requests.ts";
export type { Connection, Following } from "./stream.ts";
export type * from "./types.ts";

/** Every method throws ApiError. */
export class Thalweg extends Requests {
  readonly documents: Documents;
  readonly conversations: Conversations;

  constructor(access: Access = {}) {
    super(access);
    this.documents = new Documents(this);
    this.conversations = new Conversations(this);
  }

  /** The hits, and what was asked for besides. */
  search(search: SearchRequest, following?: Following): Answered<SearchFrame, SearchAnswer> {
    return new Answered(this, "v1/search", { method: "POST", json: search }, following);
  }

  /** The hits, and sentences that answer, each with its source; or why there are none (docs/answers.md). */
  answer(question: AnswerRequest, following?: Following): Answered<SearchFrame, SearchAnswer> {
    return new Answered(this, "v1/answers", { method: "POST", json: question }, following);
  }

  /** What was done, step by step, then a note with its sources (docs/research.md). */
  research(question: ResearchRequest, following?: Following): Answered<ResearchFrame, Research> {
    return new Answered(this, "v1/research", { method: "POST", json: question }, following);
  }

  /** Waits until reads show the write of a token, for at most so many seconds. Throws ApiError where they do not yet. */
  async wait(token: string, seconds = 30): Promise<void> {
    await this.request("v1/edges", { query: { limit: 1, after: token, wait_seconds: seconds } });
  }
}

class Documents {
  readonly #requests: Requests;

  constructor(requests: Requests) {
    this.#requests = requests;
  }

  /** Publishes a document, or its next version. */
  put(document: Envelope): Promise<DocumentAccepted> {
    return this.#requests.request("v1/documents", { method: "POST", json: document });
  }

  /** Publishes a file; its id is the file's name, unless another is given. */
  putFile(file: File, { id = file.name, collection, title }: { id?: string; collection?: string; title?: string | undefined } = {}): Promise<DocumentAccepted> {
    const form = new FormData();
    if (collection !== undefined) form.append("collection", collection);
    form.append("id", id);
    if (title) form.append("title", title);
    form.append("file", file, file.name);
    return this.#requests.request("v1/documents", { method: "POST", body: form });
  }

  get(id: string, collection?: string, signal?: AbortSignal): Promise<DocumentDetail> {
    return this.#requests.request(pathOf(id), { query: { collection }, signal });
  }

  /** It is no error where there is none. */
  delete(id: string, collection?: string): Promise<WriteAccepted> {
    return this.#requests.request(pathOf(id), { method: "DELETE", query: { collection } });
  }

  /** What becomes of the write of a token, else of the newest: step by step, the last one final; or as it is now. */
  status(id: string, { collection, token }: { collection?: string | undefined; token?: string } = {}, following?: Following): Answered<StatusFrame, DocumentStatus> {
    const query = { collection, position: token };
    return new Answered(this.#requests, `${pathOf(id)}/status`, { query }, following);
  }
}

/** Those of this caller. A question is asked in one by its id: `answer({ q, conversation })` (docs/answers.md). */
class Conversations {
  readonly #requests: Requests;

  constructor(requests: Requests) {
    this.#requests = requests;
  }

  create(conversation: NewConversation = {}): Promise<ConversationSummary> {
    return this.#requests.request("v1/conversations", { method: "POST", json: conversation });
  }

  /** Those that were last changed first. */
  list(page: { limit?: number; cursor?: string } = {}): Promise<ConversationPage> {
    return this.#requests.request("v1/conversations", { query: page });
  }

  /** With its last messages; `next_cursor` leads to those before. */
  get(id: string, page: { limit?: number; cursor?: string } = {}): Promise<Conversation> {
    return this.#requests.request(`v1/conversations/${segment(id)}`, { query: page });
  }

  rename(id: string, title: string): Promise<ConversationSummary> {
    return this.#requests.request(`v1/conversations/${segment(id)}`, { method: "PATCH", json: { title } });
  }

  delete(id: string): Promise<void> {
    return this.#requests.request(`v1/conversations/${segment(id)}`, { method: "DELETE" });
  }
}

const pathOf = (id: string): string => `v1/documents/${segment(id)}`;
