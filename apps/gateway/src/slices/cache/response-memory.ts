import { ownText, type RawFields } from "@headworks/http1";

/** For stored responses of all routes. */
export const MAX_BYTES = 64 * 1024 * 1024;
const MAX_IDLE_MS = 3_600_000;
/** Estimated overhead of an entry besides its texts and body. */
const OVERHEAD_BYTES = 512;

/** State at the time of the request that validity depends on. */
export interface RequestState {
  /** Of its route; a purge starts a new one. */
  readonly epoch: number;
  /** Total number of changes of any resource. */
  readonly changes: number;
}

/** A stored response. */
export interface Entry extends RequestState {
  readonly route: string;
  readonly fields: Readonly<RawFields>;
  readonly body: Buffer;
  /** Arrival of the header, monotonic clock. */
  readonly receivedMs: number;
  /** Age on arrival (RFC 9111, 4.2.3). */
  readonly initialAgeMs: number;
  /** Remaining freshness on arrival; negative if stale on arrival. */
  readonly freshForMs: number;
  /** After that, how long it may be served during revalidation. */
  readonly staleForMs: number;
  /** Must not be served stale, whatever the request allows. */
  readonly forbidsStale: boolean;
  /** Stored representations of the resource to replace: pairs of accepted codings and coding. */
  readonly codings?: readonly string[];
  /** The upstream confirmed it after expiry, and no client was served since. */
  isConfirmed?: boolean;
}

/** Stored responses by key, bounded in bytes, with LRU eviction. */
export class ResponseMemory {
  readonly #maxBytes: number;
  /** In LRU order. */
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
    // Copied, so that entries retain no uncounted memory.
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

  /** Reserves memory for a body being read; false if too much is reserved, so that the body must not be stored. */
  reserve(bytes: number): boolean {
    if (this.#pendingBytes + bytes > this.#maxBytes) return false;
    this.#pendingBytes += bytes;
    return true;
  }

  free(bytes: number): void {
    this.#pendingBytes -= bytes;
  }
}

/** Accounted size of an entry in bytes. */
export function sizeOf(key: string, { fields, body, codings }: Entry): number {
  const bytes = textLength(fields) + OVERHEAD_BYTES + key.length + body.length;
  return codings === undefined ? bytes : bytes + textLength(codings);
}

function textLength(texts: readonly string[]): number {
  let length = 0;
  for (const text of texts) length += text.length;
  return length;
}
