/** Documents on their way into the index: published by a form each, then followed until a search and the graph show
 *  them. They outlive the view, so that it can be left meanwhile. */

import { asApiError, type Connection, type FormatInfo, isAbort } from "../../client/thalweg.ts";
import { thalweg } from "../../lib/thalweg.ts";
import { collections } from "../../lib/collections.svelte.ts";
import { bytes } from "../../lib/format.ts";

export type Stage = "waiting" | "sending" | "published" | "searchable" | "done" | "refused";

const AT_ONCE = 4; // requests, and streams of status, of which the service has a limited number
const MOST_SHOWN = 500;
const MOST_KEPT = 100;
const KEPT_AS = "thalweg.refusals";

/** What is published: a file, or a text as one. */
export interface Content {
  id: string;
  collection: string;
  file: File;
  title?: string;
}

interface KeptRefusal {
  id: string;
  collection: string;
  message: string;
  advice: string | null;
}

export class Upload {
  readonly content: Content;
  stage = $state<Stage>("waiting");
  superseded = $state(false);
  message = $state<string | null>(null);
  /** What to do about a refusal. */
  advice = $state<string | null>(null);
  notes = $state.raw<string[]>([]);
  /** Seconds from the beginning of the request to each stage. */
  seconds = $state.raw<Partial<Record<Stage, number>>>({});
  dropped = $state(false);
  /** Here, after it was published. */
  deleted = $state(false);
  /** Of its record in the log, once it is there. */
  position: string | null = null;
  #begun = 0;

  constructor(content: Content) {
    this.content = content;
  }

  /** One that was refused before this page was loaded. Its file is gone. */
  static refused({ id, collection, message, advice }: KeptRefusal): Upload {
    const upload = new Upload({ id, collection, file: new File([], id) });
    upload.#refuse(message, advice);
    return upload;
  }

  /** What is to be remembered of it: of what was refused before it was a record, the service keeps nothing. */
  get refusal(): KeptRefusal | null {
    if (this.stage !== "refused" || this.position !== null) return null;
    const { id, collection } = this.content;
    return { id, collection, message: this.message ?? "", advice: this.advice };
  }

  get final(): boolean {
    return this.stage === "done" || this.stage === "refused";
  }

  async run(): Promise<void> {
    this.#begun = performance.now();
    this.stage = "sending";
    try {
      const most = await largestDocument();
      if (this.content.file.size > most) {
        return this.#refuse(`It has ${bytes(this.content.file.size)}; ${bytes(most)} are the most.`);
      }
      const { token } = await thalweg.documents.putFile(this.content.file, this.content);
      this.position = token.split("@", 1)[0]!;
      this.#reach("published");
      await this.#follow(token);
    } catch (failure) {
      if (isAbort(failure)) return;
      const { message, advice } = asApiError(failure);
      this.#refuse(message, advice);
    }
  }

  async #follow(token: string): Promise<void> {
    const { id, collection } = this.content;
    const onConnection = ({ state }: Connection) => (this.dropped = state === "dropped");
    for await (const { data: status } of thalweg.documents.status(id, { collection, token }, { onConnection })) {
      this.notes = status.notes;
      if (status.status === "dead_lettered") return this.#refuse(status.message ?? "It could not be indexed.", status.advice);
      if (status.status === "superseded") {
        this.superseded = true;
        this.message = status.message;
      }
      if (status.searchable && this.stage === "published") {
        this.#reach("searchable");
        uploads.changed();
      }
      if (status.final) this.#reach("done");
    }
  }

  #reach(stage: Stage): void {
    this.stage = stage;
    this.seconds = { ...this.seconds, [stage]: (performance.now() - this.#begun) / 1000 };
  }

  #refuse(message: string, advice?: string | null): void {
    this.message = message;
    this.advice = advice ?? null;
    this.stage = "refused";
  }
}

class Uploads {
  list = $state.raw<Upload[]>(keptRefusals().map((each) => Upload.refused(each)));
  /** Counted up when documents have become searchable or were deleted: lists are to be read again. */
  changes = $state(0);
  #waiting: { upload: Upload; finished: () => void }[] = [];
  #running = 0;

  /** The upload, once nothing more comes of it. */
  add(content: Content): Promise<Upload> {
    const upload = new Upload(content);
    const others = this.list.filter(({ refusal }) => refusal?.id !== content.id || refusal.collection !== content.collection);
    this.list = [upload, ...others].slice(0, MOST_SHOWN);
    return new Promise((resolve) => {
      this.#waiting.push({ upload, finished: () => resolve(upload) });
      this.#next();
    });
  }

  /** The newest of each document. */
  get newest(): Upload[] {
    const seen = new Set<string>();
    return this.list.filter(({ content: { id, collection } }) => {
      const key = `${collection}/${id}`;
      return !seen.has(key) && seen.add(key);
    });
  }

  noteDeleted(id: string, collection: string): void {
    for (const each of this.list) {
      if (each.content.id === id && each.content.collection === collection) each.deleted = true;
    }
  }

  clear(): void {
    this.list = this.list.filter((each) => !each.final);
    this.#keep();
  }

  #keep(): void {
    const refusals = this.list.flatMap(({ refusal }) => refusal ?? []).slice(0, MOST_KEPT);
    try {
      sessionStorage.setItem(KEPT_AS, JSON.stringify(refusals));
    } catch {
      // no room, or not allowed: they are shown until the page is left
    }
  }

  changed(): void {
    this.changes += 1;
    void collections.refresh();
  }

  /** What this page published as the record that a document was made from, if it did. */
  contentOf(id: string, collection: string, position: string): Content | undefined {
    return this.list.find(
      (each) => each.position === position && each.content.id === id && each.content.collection === collection,
    )?.content;
  }

  #next(): void {
    while (this.#running < AT_ONCE && this.#waiting.length > 0) {
      const { upload, finished } = this.#waiting.shift()!;
      this.#running += 1;
      void upload.run().finally(() => {
        this.#running -= 1;
        this.#keep();
        this.changed();
        finished();
        this.#next();
      });
    }
  }
}

/** Those of this tab. */
function keptRefusals(): KeptRefusal[] {
  try {
    return JSON.parse(sessionStorage.getItem(KEPT_AS) ?? "[]") as KeptRefusal[];
  } catch {
    return [];
  }
}

export const uploads = new Uploads();

let largest: Promise<number> | undefined;

/** The bytes that a document may have: a larger one is not sent, for the service would hang up in the midst of it. */
function largestDocument(): Promise<number> {
  largest ??= thalweg.request<FormatInfo[]>("v1/formats").then((formats) =>
    Math.min(...formats.map((format) => format.limits["bytes"] ?? Infinity)),
  );
  largest.catch(() => (largest = undefined));
  return largest;
}

/** The files of a drop, those of folders too, named by their paths. Call it in the event: its items are gone after it. */
export async function filesOf(transfer: DataTransfer): Promise<{ path: string; file: File }[]> {
  const found = [...transfer.items].map((item) => {
    const entry = item.webkitGetAsEntry();
    const file = item.getAsFile();
    if (entry) return filesIn(entry);
    return file ? [{ path: file.name, file }] : []; // from another page, or a text
  });
  return (await Promise.all(found)).flat();
}

async function filesIn(entry: FileSystemEntry): Promise<{ path: string; file: File }[]> {
  if (entry.isFile) {
    const file = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject));
    return [{ path: entry.fullPath.replace(/^\//, ""), file }];
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  const found: { path: string; file: File }[] = [];
  for (;;) {
    const entries = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (entries.length === 0) return found; // a reader gives a hundred at a time
    for (const each of entries) if (!each.name.startsWith(".")) found.push(...(await filesIn(each)));
  }
}
