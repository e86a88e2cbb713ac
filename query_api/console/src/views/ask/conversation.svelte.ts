/** A conversation: its questions, and what has come of their answers so far. It goes on while another view is shown. */

import { type Answer, type AnswerRequest, type ApiError, asApiError, type ConversationMessage, isAbort } from "../../client/thalweg.ts";
import { NO_ANSWER, answerOf, withFrame, type AnswerSoFar } from "../../lib/answer.ts";
import { service } from "../../lib/service.svelte.ts";
import { thalweg } from "../../lib/thalweg.ts";

/** What is searched: a collection, or all; of it these documents, or all. */
export interface Scope {
  collection: string | undefined;
  documents: readonly string[];
}

/** A question and its answer. */
export class Turn {
  readonly question: string;
  answer = $state.raw<AnswerSoFar>(NO_ANSWER);
  running = $state(false);
  /** How many hits its answer is looked for in; null before they are there. */
  hits = $state<number | null>(null);
  notes = $state.raw<readonly string[]>([]);
  dropped = $state(false);
  stopped = $state(false);
  error = $state.raw<ApiError | null>(null);
  #controller = new AbortController();

  constructor(question: string, answer: Answer | null = null) {
    this.question = question;
    if (answer !== null) this.answer = answerOf(answer);
  }

  /** What was searched, where that is not the question itself. */
  get searchedFor(): string | null {
    const query = this.answer.whole?.query || this.question;
    return query.trim() === this.question.trim() ? null : query;
  }

  /** Forgets what came before. */
  begin(): void {
    this.#controller = new AbortController();
    this.answer = NO_ANSWER;
    this.notes = [];
    this.hits = this.error = null;
    this.stopped = false;
    this.running = true;
  }

  async follow(request: AnswerRequest): Promise<void> {
    const { signal } = this.#controller;
    try {
      const onConnection = ({ state }: { state: string }) => (this.dropped = state === "dropped");
      for await (const frame of thalweg.answer(request, { signal, onConnection })) {
        if (frame.event === "reset") this.answer = NO_ANSWER;
        if (frame.event === "meta" || frame.event === "reset") this.hits = 0;
        if (frame.event === "done") this.notes = frame.data.notes;
        if (frame.event === "hit") this.hits = (this.hits ?? 0) + 1;
        this.answer = withFrame(this.answer, frame);
      }
    } catch (failure) {
      if (signal.aborted || isAbort(failure)) return;
      this.error = asApiError(failure);
      if (this.error.passes) service.check();
    } finally {
      if (this.#controller.signal === signal) this.running = this.dropped = false;
    }
  }

  stop(): void {
    this.stopped = this.running;
    this.#controller.abort();
    this.running = this.dropped = false;
  }
}

export class Conversation {
  /** Null until it is kept by the service. */
  id = $state<string | null>(null);
  title = $state("");
  scope = $state.raw<Scope>({ collection: undefined, documents: [] });
  turns = $state.raw<readonly Turn[]>([]);
  loading = $state(false);
  /** Of the questions before those that are shown; null where these are the first. */
  earlier = $state<string | null>(null);
  /** What it could not be read for. */
  error = $state.raw<ApiError | null>(null);
  /** Why the service does not keep it: then each question is answered alone. */
  unkept = $state.raw<ApiError | null>(null);

  constructor(scope: Scope = { collection: undefined, documents: [] }) {
    this.scope = scope;
  }

  get running(): boolean {
    return this.turns.some((turn) => turn.running);
  }

  /** What is kept under the id: its last questions, or those before the ones that are shown. */
  async load(id: string): Promise<void> {
    this.id = id;
    this.loading = true;
    this.error = null;
    const cursor = this.earlier;
    const later = cursor === null ? [] : this.turns;
    try {
      const { title, collection, documents, messages, next_cursor } = await thalweg.conversations.get(id, cursor === null ? {} : { cursor });
      this.title = title ?? "";
      this.scope = { collection: collection ?? undefined, documents };
      this.turns = [...turnsOf(messages), ...later];
      this.earlier = next_cursor;
    } catch (failure) {
      this.error = asApiError(failure);
    }
    this.loading = false;
  }

  /** Resolves once it has an id, or will have none; the answer comes then. */
  async ask(question: string): Promise<void> {
    const turn = new Turn(question);
    this.turns = [...this.turns, turn];
    await this.again(turn);
  }

  async again(turn: Turn): Promise<void> {
    turn.begin();
    if (this.id === null && this.unkept === null) await this.#keep();
    const asked = this.id === null ? searchIn(this.scope) : { conversation: this.id };
    void turn.follow({ q: turn.question, answer: true, ...asked });
  }

  async #keep(): Promise<void> {
    const { collection, documents } = this.scope;
    try {
      const made = await thalweg.conversations.create({ collection: collection ?? null, documents: [...documents] });
      this.id = made.id;
    } catch (failure) {
      this.unkept = asApiError(failure);
    }
  }
}

/** Where a question is searched for that is asked in no conversation. */
function searchIn({ collection, documents }: Scope): Pick<AnswerRequest, "collection" | "filter"> {
  const ids = documents.map((id) => id.replaceAll("|", "\\|")).join("|");
  return { collection: collection ?? null, filter: ids === "" ? [] : [`document=${ids}`] };
}

/** Each answer with the question of the same retrieval. */
function turnsOf(messages: readonly ConversationMessage[]): Turn[] {
  const questions = new Map(messages.filter(({ role }) => role === "user").map((each) => [each.retrieval_id, each.text]));
  return messages.flatMap(({ role, retrieval_id, answer }) => {
    const question = questions.get(retrieval_id);
    return role === "assistant" && question !== undefined ? [new Turn(question, answer)] : [];
  });
}
