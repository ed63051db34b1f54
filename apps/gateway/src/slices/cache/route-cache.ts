// Tested by ../../../test/cache.test.ts
import type { Cache } from "@headworks/gateway-contract";
import { fieldValue, hasField, ownText, setField, type Framing, type RawFields } from "@headworks/http1";
import type { RequestContext } from "#request/context.ts";
import type { Answer, AnswerCapture, AnswerHead, AnswerStore, KeptAnswer } from "#request/phases.ts";
import type { AnswerMemory, AskedWhen, Entry } from "./answer-memory.ts";
import {
  cacheKey,
  conditionsFor,
  DEFAULT_BODY_BYTES,
  forbidsStale,
  isForbidden,
  isUnchanged,
  mayKeep,
  mayUseCache,
} from "./cache-rules.ts";
import type { ChangedResources } from "./changed-resources.ts";
import type { Flights } from "./flights.ts";

/** How a request fared, as `X-Cache` says it. */
export type CacheOutcome = "hit" | "revalidated" | "stale" | "miss" | "bypass";

/** What is remembered of a route's cache over generations. */
export interface CacheState {
  /** Answers of other epochs are not given any more. */
  epoch: number;
  readonly flights: Flights;
}

/** What all routes share. */
export interface CacheTools {
  readonly memory: AnswerMemory;
  readonly changed: ChangedResources;
  readonly nowMs: () => number;
  readonly count: (route: string, outcome: CacheOutcome) => void;
}

const NEVER: AskedWhen = { epoch: 0, changes: 0 };
const DEFAULT_WAIT_MS = 5000;
/** After a refresh that brought nothing, the next one waits so long: the upstream has trouble already. */
const REFRESH_PAUSE_MS = 1000;

/** Fields that are made anew for each answer. */
const NOT_KEPT: ReadonlySet<string> = new Set(["age", "x-cache"]);
/** Fields that 304 carries (RFC 9110, 15.4.5). */
const OF_304: ReadonlySet<string> = new Set(["cache-control", "content-location", "date", "etag", "expires", "vary"]);

/** Keeps answers of one route. */
export class RouteCache implements AnswerStore {
  readonly #route: string;
  readonly #cache: Cache;
  readonly #vary: readonly string[];
  readonly #ttlMs: number;
  readonly #staleMs: number;
  readonly #state: CacheState;
  readonly #tools: CacheTools;
  readonly #pausedUntilMs = new Map<string, number>();
  /** When the upstream was asked: a purge, or a change, means what is on its way as well. */
  readonly #asked = new WeakMap<RequestContext, AskedWhen>();

  constructor(route: string, cache: Cache, state: CacheState, tools: CacheTools) {
    this.#route = route;
    this.#cache = cache;
    this.#vary = (cache.vary ?? []).map((name) => name.toLowerCase()).toSorted();
    this.#ttlMs = cache.ttl_secs * 1000;
    this.#staleMs = this.#ttlMs + (cache.stale_while_revalidate_secs ?? 0) * 1000;
    this.#state = state;
    this.#tools = tools;
  }

  lookup(request: RequestContext): KeptAnswer | Promise<KeptAnswer> {
    if (!mayUseCache(request, this.#vary)) {
      this.#tell(request, "bypass");
      return "bypass";
    }
    const key = cacheKey(request, this.#vary);
    const kept = this.#find(request, key, true);
    if (kept !== undefined) return kept;
    const { flights } = this.#state;
    const { coalescing } = this.#cache;
    if (coalescing !== undefined && flights.has(key)) {
      return this.#afterOther(request, key, coalescing.wait_ms ?? DEFAULT_WAIT_MS);
    }
    flights.begin(key, request);
    return this.#miss(request);
  }

  #miss(request: RequestContext): "miss" {
    this.#asks(request);
    this.#tell(request, "miss");
    return "miss";
  }

  /** Somebody asks for the same already: what comes of it may do for both. */
  async #afterOther(request: RequestContext, key: string, waitMs: number): Promise<KeptAnswer> {
    await this.#state.flights.wait(key, waitMs);
    // Without a refresh: the client may be gone by now, and then nobody would make it.
    return this.#find(request, key, false) ?? this.#miss(request);
  }

  #find(request: RequestContext, key: string, mayRefresh: boolean): KeptAnswer | undefined {
    const { memory, nowMs } = this.#tools;
    const now = nowMs();
    const entry = memory.get(key, now);
    if (entry === undefined) return undefined;
    const ageMs = now - entry.storedMs;
    const isFresh = ageMs < this.#ttlMs;
    const isOver = ageMs >= this.#staleMs || (!isFresh && forbidsStale(entry.fields));
    if (isOver || !this.#isValid(request, entry)) {
      memory.delete(key);
      return undefined;
    }
    const answer = answerOf(request, entry, ageMs);
    this.#tell(request, isFresh ? (entry.isConfirmed === true ? "revalidated" : "hit") : "stale");
    entry.isConfirmed = false;
    if (isFresh || !mayRefresh || this.#state.flights.has(key)) return answer;
    if (now < (this.#pausedUntilMs.get(key) ?? 0)) return answer;
    this.#state.flights.begin(key, request);
    this.#asks(request);
    return { stale: answer, conditions: conditionsFor(entry.fields) };
  }

  capture(request: RequestContext, head: AnswerHead, framing: Framing): AnswerCapture | undefined {
    const key = cacheKey(request, this.#vary);
    const { memory, nowMs } = this.#tools;
    if (head.status === 304 && request.refreshes !== undefined) {
      this.#confirm(request, head.fields, key);
      this.#landed(request, key);
      return undefined;
    }
    if (!mayKeep(head, framing, this.#cache)) {
      // What was kept is not so any more, unless the upstream only has trouble.
      if (head.status < 500) memory.delete(key);
      this.#landed(request, key);
      return undefined;
    }
    const entry = {
      route: this.#route,
      ...this.#askedWhen(request),
      fields: fieldsToKeep(head.fields),
      initialAgeS: secondsOf(fieldValue(head.fields, "age")),
    };
    const mostBytes = this.#cache.max_body_bytes ?? DEFAULT_BODY_BYTES;
    let pieces: Buffer[] = [];
    let bytes = 0;
    let isOver = false;
    const end = (): void => {
      isOver = true;
      pieces = [];
      memory.free(bytes);
      this.#landed(request, key);
    };
    return {
      data: (piece) => {
        if (isOver) return;
        if (bytes + piece.length > mostBytes || !memory.reserve(piece.length)) return end();
        bytes += piece.length;
        // It lies in memory that is read into again.
        pieces.push(Buffer.from(piece));
      },
      end: () => {
        if (isOver) return;
        if (this.#isValid(request, entry)) {
          const now = nowMs();
          memory.put(key, { ...entry, body: Buffer.concat(pieces), storedMs: now }, now);
          this.#pausedUntilMs.delete(key);
        }
        end();
      },
      abandon: () => {
        if (!isOver) end();
      },
    };
  }

  /** The upstream says that what is kept is still its answer, with these fields in place of the old ones. */
  #confirm(request: RequestContext, fields: RawFields, key: string): void {
    const { memory, nowMs } = this.#tools;
    const now = nowMs();
    const entry = memory.get(key, now);
    const askedWhen = this.#askedWhen(request);
    if (entry === undefined || !this.#isValid(request, entry) || !this.#isValid(request, askedWhen)) return;
    const [name = "", value] = conditionsFor(entry.fields);
    // It may be another answer by now than the one that was asked about.
    if (value === undefined || fieldValue(request.fields, name.toLowerCase()) !== value) return;
    if (isForbidden(fields)) return memory.delete(key);
    const renewed = [...entry.fields];
    for (let at = 0; at < fields.length; at += 2) {
      const changed = fields[at] ?? "";
      if (OF_304.has(changed.toLowerCase())) setField(renewed, changed, fields[at + 1] ?? "");
    }
    const initialAgeS = secondsOf(fieldValue(fields, "age"));
    memory.put(key, { ...entry, ...askedWhen, fields: renewed, storedMs: now, initialAgeS, isConfirmed: true }, now);
  }

  #asks(request: RequestContext): void {
    this.#asked.set(request, { epoch: this.#state.epoch, changes: this.#tools.changed.count });
  }

  #askedWhen(request: RequestContext): AskedWhen {
    return this.#asked.get(request.refreshes ?? request) ?? NEVER;
  }

  /** Whether what was asked for then is what would be asked for now, as far as the gateway can know. */
  #isValid(request: RequestContext, { epoch, changes }: AskedWhen): boolean {
    return epoch === this.#state.epoch && !this.#tools.changed.hasChanged(request, changes);
  }

  abandon(request: RequestContext): void {
    this.#landed(request, cacheKey(request, this.#vary));
  }

  #landed(request: RequestContext, key: string): void {
    if (request.refreshes !== undefined) this.#pause(key);
    this.#state.flights.end(key, request);
  }

  #pause(key: string): void {
    const { memory, nowMs } = this.#tools;
    const now = nowMs();
    const entry = memory.get(key, now);
    const isStale = entry !== undefined && now - entry.storedMs >= this.#ttlMs;
    if (!isStale) return;
    for (const [known, untilMs] of this.#pausedUntilMs) if (untilMs <= now) this.#pausedUntilMs.delete(known);
    this.#pausedUntilMs.set(ownText(key), now + REFRESH_PAUSE_MS);
  }

  #tell(request: RequestContext, outcome: CacheOutcome): void {
    request.addAnswerField("X-Cache", outcome);
    this.#tools.count(this.#route, outcome);
  }
}

function answerOf(request: RequestContext, entry: Entry, ageMs: number): Answer {
  const age = ["Age", String(entry.initialAgeS + Math.floor(ageMs / 1000))];
  if (!isUnchanged(request.fields, entry.fields)) {
    return { status: 200, fields: [...entry.fields, ...age], body: entry.body };
  }
  return { status: 304, fields: [...filterFields(entry.fields, (name) => OF_304.has(name)), ...age], body: "" };
}

function fieldsToKeep(fields: RawFields): RawFields {
  const kept = filterFields(fields, (name) => !NOT_KEPT.has(name));
  // What a cache gives later must say when it was made (RFC 9110, 6.6.1).
  if (!hasField(kept, "date")) kept.push("Date", new Date().toUTCString());
  return kept;
}

function filterFields(fields: Readonly<RawFields>, isKept: (lowerName: string) => boolean): RawFields {
  return fields.filter((_text, at) => isKept((fields[at - (at % 2)] ?? "").toLowerCase()));
}

function secondsOf(age: string | undefined): number {
  return age !== undefined && /^[0-9]{1,9}$/.test(age) ? Number(age) : 0;
}
