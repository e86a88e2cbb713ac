/** A conversation: its questions, and what has come of their answers so far. It goes on while another view is shown. */

import { type Answer, type AnswerRequest, type ApiError, asApiError, type ConversationMessage } from "../../client/thalweg.ts";
import { NO_ANSWER, answerOf, withFrame, type AnswerSoFar } from "../../lib/answer.ts";
import { thalweg } from "../../lib/thalweg.ts";
import { Asked } from "./asked.svelte.ts";
import { Inquiry } from "./inquiry.svelte.ts";

/** What is searched: a collection, or all; of it these documents, or all. */
export interface Scope {
  collection: string | undefined;
  documents: readonly string[];
}

export type Form = NonNullable<AnswerRequest["answer_form"]>;

/** How a question is to be answered: by a research, or in this form. */
export interface Manner {
  research: boolean;
  form: Form;
}

/** A question and its answer. */
export class Turn extends Asked {
  readonly form: Form;
  answer = $state.raw<AnswerSoFar>(NO_ANSWER);
  /** How many hits its answer is looked for in; null before they are there. */
  hits = $state<number | null>(null);
  notes = $state.raw<readonly string[]>([]);

  constructor(question: string, form: Form = "extract", answer: Answer | null = null) {
    super(question);
    this.form = form;
    if (answer !== null) this.answer = answerOf(answer);
  }

  /** What was searched, where that is not the question itself. */
  get searchedFor(): string | null {
    const query = this.answer.whole?.query || this.question;
    return query.trim() === this.question.trim() ? null : query;
  }

  override begin(): void {
    super.begin();
    this.answer = NO_ANSWER;
    this.notes = [];
    this.hits = null;
  }

  follow(request: AnswerRequest): Promise<void> {
    return this.read(
      (following) => thalweg.answer({ ...request, answer_form: this.form }, following),
      (frame) => {
        if (frame.event === "reset") this.answer = NO_ANSWER;
        if (frame.event === "meta" || frame.event === "reset") this.hits = 0;
        if (frame.event === "done") this.notes = frame.data.notes;
        if (frame.event === "hit") this.hits = (this.hits ?? 0) + 1;
        this.answer = withFrame(this.answer, frame);
      },
    );
  }
}

export class Conversation {
  /** Null until it is kept by the service. */
  id = $state<string | null>(null);
  title = $state("");
  scope = $state.raw<Scope>({ collection: undefined, documents: [] });
  turns = $state.raw<readonly (Turn | Inquiry)[]>([]);
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
  async ask(question: string, { research, form }: Manner): Promise<void> {
    const turn = research ? new Inquiry(question, this.scope.collection) : new Turn(question, form);
    this.turns = [...this.turns, turn];
    await this.again(turn);
  }

  async again(turn: Turn | Inquiry): Promise<void> {
    turn.begin();
    if (turn instanceof Inquiry) return void turn.follow();
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
    return role === "assistant" && question !== undefined ? [new Turn(question, answer?.form, answer)] : [];
  });
}
