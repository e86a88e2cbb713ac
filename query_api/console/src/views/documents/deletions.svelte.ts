/** Deletes of this tab, and how each can be undone. A delete is a record on the log; undoing publishes the document
 *  again: the file itself where this page published it, else what the service had read of it, and the page says so. */

import { asApiError, type DocumentDetail, type DocumentSummary } from "../../client/thalweg.ts";
import { thalweg } from "../../lib/thalweg.ts";
import { confirmation } from "../../lib/confirmation.svelte.ts";
import { deletingDocument } from "../../lib/consequences.ts";
import { statusAfter } from "./status.ts";
import { uploads, type Content } from "./uploads.svelte.ts";

type State = "deleting" | "deleted" | "restoring" | "restored" | "failed";

export class Deletion {
  readonly id: string;
  readonly collection: string;
  readonly title: string;
  state = $state<State>("deleting");
  message = $state<string | null>(null);
  /** Whether undoing brings back exactly what was there. */
  exact = $state(false);
  #file: Content | undefined;
  #read: DocumentDetail | undefined;

  constructor(document: DocumentSummary) {
    this.id = document.id;
    this.collection = document.collection;
    this.title = document.title;
  }

  async run(): Promise<void> {
    try {
      this.#read = await thalweg.documents.get(this.id, this.collection);
      this.#file = uploads.contentOf(this.id, this.collection, this.#read.position);
      this.exact = this.#file !== undefined;
      const { token } = await thalweg.documents.delete(this.id, this.collection);
      const status = await statusAfter(this.id, this.collection, token, (each) => each.status === "deleted");
      if (status?.status !== "deleted") throw new Error(status?.message ?? "It was written again meanwhile.");
      this.state = "deleted";
      uploads.noteDeleted(this.id, this.collection);
    } catch (failure) {
      this.#fail(failure);
    }
    uploads.changed();
  }

  async undo(): Promise<void> {
    this.state = "restoring";
    this.message = null;
    try {
      if (this.#file) {
        const upload = await uploads.add(this.#file);
        if (upload.stage === "refused") throw new Error(upload.message ?? "It was refused.");
      } else if (this.#read) {
        const { token } = await thalweg.documents.put(envelope(this.#read));
        const status = await statusAfter(this.id, this.collection, token, (each) => each.searchable);
        if (!status?.searchable) throw new Error(status?.message ?? "It is not searchable again yet.");
      }
      this.state = "restored";
    } catch (failure) {
      this.#fail(failure);
      this.state = "deleted"; // and can be tried again
    }
    uploads.changed();
  }

  #fail(failure: unknown): void {
    this.message = asApiError(failure).message;
    this.state = "failed";
  }
}

/** A document made of what was read of one. Its text is plain by now: what marked it up is gone. */
function envelope({ id, collection, title, uri, metadata, text }: DocumentDetail) {
  return { id, collection, title, content: text, content_type: "text/plain", metadata, ...(uri ? { uri } : {}) };
}

class Deletions {
  list = $state.raw<Deletion[]>([]);

  /** Whether the person agreed; the delete is on its way then. */
  async ask(document: DocumentSummary): Promise<boolean> {
    if (!(await confirmation.ask(deletingDocument(document)))) return false;
    const deletion = new Deletion(document);
    this.list = [deletion, ...this.list];
    void deletion.run();
    return true;
  }

  dismiss(deletion: Deletion): void {
    this.list = this.list.filter((each) => each !== deletion);
  }
}

export const deletions = new Deletions();
