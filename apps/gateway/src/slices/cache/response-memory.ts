import { ownText, type RawFields } from "@headworks/http1";

/** All kept answers of all routes together. */
export const MAX_BYTES = 64 * 1024 * 1024;
const MAX_IDLE_MS = 3_600_000;
/** What an entry costs besides its text and body, roughly. */
const OVERHEAD_BYTES = 512;

/** When an answer was asked for, as far as that decides for how long it holds. */
export interface AskedWhen {
  /** Of its route; a purge begins a new one. */
  readonly epoch: number;
  /** How many changes there had been, of whichever resource. */
  readonly changes: number;
}

/** An answer that is kept. */
export interface Entry extends AskedWhen {
  readonly route: string;
  readonly fields: Readonly<RawFields>;
  readonly body: Buffer;
  /** When its head arrived, on the monotonic clock. */
  readonly receivedMs: number;
  /** Its age then (RFC 9111, 4.2.3). */
  readonly initialAgeMs: number;
  /** For so long from then on it is fresh; below 0 for one that was stale on arrival. */
  readonly freshForMs: number;
  /** For so long after that it may be sent while a fresh one is fetched. */
  readonly staleForMs: number;
  /** It may not be sent stale, whatever the request allows. */
  readonly forbidsStale: boolean;
  /**
   * In place of a response: which representations of the resource are stored, each under a key of its own. Pairs of what a
   * request accepted and the coding of its response.
   */
  readonly codings?: readonly string[];
  /** The upstream said so when it became stale, and nobody was told yet. */
  isConfirmed?: boolean;
}

/** Answers by key, bounded in bytes; those that were not used for longest make room. */
export class ResponseMemory {
  readonly #maxBytes: number;
  /** In the order of their last use. */
  readonly #entries = new Map<string, { readonly entry: Entry; readonly bytes: number; usedMs: number }>();
  #bytes = 0;
  /** Entries with `codings`. */
  #choices = 0;
  #pendingBytes = 0;

  constructor(maxBytes = MAX_BYTES) {
    this.#maxBytes = maxBytes;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Entries that are responses. */
  get responses(): number {
    return this.#entries.size - this.#choices;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get(key: string, nowMs: number): Entry | undefined {
    const found = this.#entries.get(key);
    if (found === undefined) return undefined;
    if (nowMs - found.usedMs > MAX_IDLE_MS) {
      this.delete(key);
      return undefined;
    }
    this.#entries.delete(key);
    found.usedMs = nowMs;
    this.#entries.set(key, found);
    return found.entry;
  }

  put(key: string, entry: Entry, nowMs: number): void {
    this.delete(key);
    const bytes = sizeOf(key, entry);
    if (bytes > this.#maxBytes) return;
    // What is not counted must not be held on to.
    const own = { ...entry, fields: entry.fields.map(ownText) };
    this.#entries.set(ownText(key), { entry: own, bytes, usedMs: nowMs });
    this.#bytes += bytes;
    if (entry.codings !== undefined) this.#choices += 1;
    for (const [oldest, { usedMs }] of this.#entries) {
      if (this.#bytes <= this.#maxBytes && nowMs - usedMs <= MAX_IDLE_MS) break;
      this.delete(oldest);
    }
  }

  delete(key: string): void {
    const found = this.#entries.get(key);
    if (found === undefined) return;
    this.#entries.delete(key);
    this.#bytes -= found.bytes;
    if (found.entry.codings !== undefined) this.#choices -= 1;
  }

  deleteRoute(route: string): void {
    for (const [key, { entry }] of this.#entries) if (entry.route === route) this.delete(key);
  }

  /** Room for a body that is being read; false when too many are, so that it must not be kept. */
  reserve(bytes: number): boolean {
    if (this.#pendingBytes + bytes > this.#maxBytes) return false;
    this.#pendingBytes += bytes;
    return true;
  }

  /** Gives back what was reserved. */
  free(bytes: number): void {
    this.#pendingBytes -= bytes;
  }
}

/** What an entry counts against the bound, in bytes. */
export function sizeOf(key: string, { fields, body, codings }: Entry): number {
  const bytes = textLength(fields) + OVERHEAD_BYTES + key.length + body.length;
  return codings === undefined ? bytes : bytes + textLength(codings);
}

function textLength(texts: readonly string[]): number {
  let length = 0;
  for (const text of texts) length += text.length;
  return length;
}
