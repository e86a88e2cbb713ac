/** A research: its steps as they are done, then its note, which is kept where somebody saves it. */

import { type ApiError, asApiError, type Envelope, type Research, type ResearchStep } from "../../client/thalweg.ts";
import { thalweg } from "../../lib/thalweg.ts";
import { Asked } from "./asked.svelte.ts";

export class Inquiry extends Asked {
  readonly collection: string | undefined;
  steps = $state.raw<readonly ResearchStep[]>([]);
  note = $state.raw<Research | null>(null);
  saving = $state<"" | "sent" | "searchable">("");
  unsaved = $state.raw<ApiError | null>(null);

  constructor(question: string, collection: string | undefined) {
    super(question);
    this.collection = collection;
  }

  override begin(): void {
    super.begin();
    this.steps = [];
    this.note = this.unsaved = null;
    this.saving = "";
  }

  follow(): Promise<void> {
    return this.read(
      (following) => thalweg.research({ q: this.question, collection: this.collection ?? null }, following),
      (frame) => {
        if (frame.event === "step") this.steps = [...(frame.data.number === 1 ? [] : this.steps), frame.data];
        if (frame.event === "done") this.note = frame.data;
      },
    );
  }

  /** The note as a document; without one nothing was found. */
  get document(): Envelope | null {
    const found = this.note?.document ?? {};
    return "id" in found ? (found as unknown as Envelope) : null;
  }

  async save(): Promise<void> {
    if (this.document === null) return;
    this.saving = "sent";
    this.unsaved = null;
    try {
      await thalweg.wait((await thalweg.documents.put(this.document)).token);
      this.saving = "searchable";
    } catch (failure) {
      this.unsaved = asApiError(failure);
      this.saving = "";
    }
  }
}

/** Searches that were done together. */
export interface Round {
  number: number;
  searches: readonly ResearchStep[];
}

export function roundsOf(steps: readonly ResearchStep[]): Round[] {
  const searches = steps.filter(({ action }) => action === "search");
  const numbers = [...new Set(searches.map(({ round }) => round))];
  return numbers.map((number) => ({ number, searches: searches.filter(({ round }) => round === number) }));
}

const KINDS: Record<Research["kind"], string> = {
  definition: "what something is",
  fact: "a fact",
  comparison: "a comparison",
  list: "a list",
  path: "what joins things",
  temporal: "a time",
  claim: "a claim, which is checked too",
};

/** What was done before the first search, and after the last, in words. */
export function said({ action, detail }: ResearchStep): string {
  switch (action) {
    case "classify":
      return `The question asks for ${KINDS[detail as Research["kind"]] ?? detail}.`;
    case "check":
      return `The claim is ${VERDICTS[detail] ?? detail}.`;
    case "rank":
      return `${STOPPED[detail] ?? detail}`;
    default:
      return "";
  }
}

export const VERDICTS: Record<string, string> = {
  verified: "borne out by documents",
  contradicted: "contradicted by documents",
  ambiguous: "stated by some documents, and contradicted by others",
  not_found: "neither stated nor contradicted",
};

const STOPPED: Record<string, string> = {
  complete: "What was found holds all words of the question.",
  nothing_new: "Nothing new was left to follow.",
  rounds: "All rounds were used.",
  searches: "All searches were used.",
  seconds: "The time was used up.",
  failed: "A later search was refused.",
};
