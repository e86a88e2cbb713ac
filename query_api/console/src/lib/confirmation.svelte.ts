/** The question that the page asks before it takes something away (`components/Confirmation.svelte` shows it). */

import type { Question } from "./consequences.ts";

class Confirmation {
  #answer: ((agreed: boolean) => void) | null = null;

  /** What is asked now. */
  question = $state.raw<Question | null>(null);

  /** Resolves to whether the person agreed. A question that is asked meanwhile answers this one with no. */
  ask(question: Question): Promise<boolean> {
    this.answer(false);
    this.question = question;
    return new Promise((resolve) => (this.#answer = resolve));
  }

  answer(agreed: boolean): void {
    this.question = null;
    this.#answer?.(agreed);
    this.#answer = null;
  }
}

export const confirmation = new Confirmation();
