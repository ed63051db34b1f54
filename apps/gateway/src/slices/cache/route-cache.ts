import type { Cache } from "@headworks/gateway-contract";
import { hasField, lengthFraming, ownText, removeField, type Framing, type RawFields } from "@headworks/http1";
import type {
  KeptResponse,
  RequestContext,
  Response,
  ResponseCapture,
  ResponseHead,
  ResponseStore,
} from "#request/context.ts";
import type { Clock } from "#slice.ts";
import type { ResponseMemory, RequestState, Entry } from "./response-memory.ts";
import { ANY_FRESH, initialAgeMs, responsePolicy, type RequestPolicy, type ResponsePolicy } from "./cache-control.ts";
import {
  acceptedCodings,
  cacheKey,
  conditionsFor,
  contentCoding,
  DEFAULT_BODY_BYTES,
  confirms,
  isUnchanged,
  mayStore,
  representationFor,
  requestPolicyOf,
  variesOnCoding,
} from "./cache-rules.ts";
import type { ChangedResources } from "./changed-resources.ts";
import type { RequestCoalescer } from "./request-coalescer.ts";

/** Lookup outcome, as in `X-Cache`. */
export type CacheOutcome = "hit" | "revalidated" | "stale" | "miss" | "bypass";

export interface CacheState {
  /** Responses of other epochs are invalid. */
  epoch: number;
  readonly coalescer: RequestCoalescer;
}

/** Shared by all routes. */
export interface CacheTools {
  readonly memory: ResponseMemory;
  readonly changed: ChangedResources;
  readonly clock: Clock;
  readonly count: (route: string, outcome: CacheOutcome) => void;
}

/** A request sent to the upstream. */
interface Asked extends RequestState {
  readonly key: string;
  readonly coalesced: string;
  readonly requestedMs: number;
  /** The stored response being revalidated. */
  readonly unvalidated?: Entry;
}

const NEVER: Asked = { key: "", coalesced: "", epoch: 0, changes: 0, requestedMs: Number.POSITIVE_INFINITY };
const DEFAULT_WAIT_MS = 5000;
/** Pause after a failed revalidation, to spare a failing upstream. */
const REFRESH_PAUSE_MS = 1000;
/** Maximum number of accepted-coding sets per resource whose representation is remembered. */
const MAX_CHOICES = 32;

/** Fields generated per response or personal to one client. */
const NOT_STORED: ReadonlySet<string> = new Set(["age", "set-cookie", "x-cache"]);
/** Fields of a 304 (RFC 9110, 15.4.5). */
const OF_304: ReadonlySet<string> = new Set([
  "cache-control",
  "cdn-cache-control",
  "content-location",
  "date",
  "etag",
  "expires",
  "vary",
]);
/** Fields that describe the stored body; a 304 does not update them (RFC 9111, 3.2). */
const OF_BODY: ReadonlySet<string> = new Set([
  "content-digest",
  "content-encoding",
  "content-length",
  "content-md5",
  "content-range",
  "content-type",
  "repr-digest",
]);

export class RouteCache implements ResponseStore {
  readonly #route: string;
  readonly #cache: Cache;
  readonly #vary: readonly string[];
  readonly #ttlMs: number;
  readonly #staleMs: number;
  readonly #maxBodyBytes: number;
  readonly #overrides: boolean;
  readonly #state: CacheState;
  readonly #tools: CacheTools;
  readonly #pausedUntilMs = new Map<string, number>();
  /** State when the upstream request was sent; purges and changes since then invalidate its response too. */
  readonly #requested = new WeakMap<RequestContext, Asked>();

  constructor(route: string, cache: Cache, state: CacheState, tools: CacheTools) {
    this.#route = route;
    this.#cache = cache;
    this.#vary = (cache.vary ?? []).map((name) => name.toLowerCase()).toSorted();
    this.#ttlMs = cache.ttl_secs * 1000;
    this.#staleMs = (cache.stale_while_revalidate_secs ?? 0) * 1000;
    this.#maxBodyBytes = cache.max_body_bytes ?? DEFAULT_BODY_BYTES;
    this.#overrides = cache.override === true;
    this.#state = state;
    this.#tools = tools;
  }

  lookup(request: RequestContext): KeptResponse | Promise<KeptResponse> {
    const said = requestPolicyOf(request, this.#vary);
    if (said === undefined) {
      this.#notify(request, "bypass");
      return "bypass";
    }
    const policy = this.#overrides ? withoutFreshness(said) : said;
    const key = cacheKey(request, this.#vary);
    const entry = this.#entryFor(request, key);
    const kept = entry === undefined ? undefined : this.#use(request, key, entry, policy, true);
    if (kept !== undefined) return kept;
    if (policy.onlyIfCached) {
      this.#notify(request, "miss");
      return { code: "not_in_cache" };
    }
    if (request.method === "HEAD" || policy.noStore) {
      this.#notify(request, "miss");
      return "bypass";
    }
    const { coalescer } = this.#state;
    const { coalescing } = this.#cache;
    const coalesced = coalescingKey(request, key);
    if (coalescing !== undefined && coalescer.has(coalesced)) {
      return this.#afterOther(request, key, coalesced, policy, coalescing.wait_ms ?? DEFAULT_WAIT_MS);
    }
    coalescer.begin(coalesced, request);
    return this.#miss(request, key, coalesced, entry);
  }

  /** Revalidates a stored response that has a validator. */
  #miss(request: RequestContext, key: string, coalesced: string, entry: Entry | undefined): KeptResponse {
    const validation = entry === undefined ? [] : conditionsFor(entry.fields);
    if (entry === undefined || validation.length === 0) {
      this.#asks(request, key, coalesced);
      this.#notify(request, "miss");
      return "miss";
    }
    this.#asks(request, key, coalesced, entry);
    // For generated errors; an upstream response may change it.
    mark(request, "miss");
    return { validation };
  }

  /** Waits for an equal upstream request in flight, whose response may be reused. */
  async #afterOther(
    request: RequestContext,
    key: string,
    coalesced: string,
    policy: RequestPolicy,
    waitMs: number,
  ): Promise<KeptResponse> {
    await this.#state.coalescer.wait(coalesced, waitMs);
    const entry = this.#entryFor(request, key);
    // The response is as fresh as one to this request would be.
    const policyNow = { ...policy, noCache: false };
    // Without revalidation, since the client may have disconnected.
    const kept = entry === undefined ? undefined : this.#use(request, key, entry, policyNow, false);
    return kept ?? this.#miss(request, key, coalesced, entry);
  }

  /** The stored response for the request's accepted codings, fresh or stale; deletes invalid ones. */
  #entryFor(request: RequestContext, key: string): Entry | undefined {
    const { memory, clock } = this.#tools;
    const now = clock.monotonic();
    let entry = memory.get(key, now);
    let entryKey = key;
    if (entry?.codings !== undefined) {
      const name = representationFor(entry.codings, acceptedCodings(request.fields));
      if (name === undefined) return undefined;
      entryKey = codingKey(key, name);
      entry = memory.get(entryKey, now);
    }
    if (entry === undefined) return undefined;
    const isFinished = now - entry.receivedMs >= entry.freshForMs + entry.staleForMs && !hasValidator(entry.fields);
    if (!isFinished && this.#isValid(request, entry)) return entry;
    memory.delete(entryKey);
    return undefined;
  }

  /** The response served from the cache, unless the upstream must be contacted first. */
  #use(
    request: RequestContext,
    key: string,
    entry: Entry,
    policy: RequestPolicy,
    mayRefresh: boolean,
  ): KeptResponse | undefined {
    const now = this.#tools.clock.monotonic();
    const residentMs = now - entry.receivedMs;
    const freshMs = entry.freshForMs - residentMs;
    if (policy !== ANY_FRESH && !allows(policy, entry, residentMs)) return undefined;
    if (freshMs > 0) {
      this.#notify(request, entry.isConfirmed === true ? "revalidated" : "hit");
      entry.isConfirmed = false;
      return responseOf(request, entry, residentMs);
    }
    const isWithinStale = -freshMs < entry.staleForMs;
    if (entry.forbidsStale || !(isWithinStale || -freshMs <= policy.maxStaleMs)) return undefined;
    this.#notify(request, "stale");
    const response = responseOf(request, entry, residentMs);
    const coalesced = coalescingKey(request, key);
    if (!mayRefresh || !isWithinStale || request.method !== "GET" || policy.noStore) return response;
    if (this.#state.coalescer.has(coalesced) || now < (this.#pausedUntilMs.get(coalesced) ?? 0)) return response;
    this.#state.coalescer.begin(coalesced, request);
    this.#asks(request, key, coalesced, entry);
    return { stale: response, conditions: conditionsFor(entry.fields) };
  }

  capture(request: RequestContext, head: ResponseHead, framing: Framing): ResponseCapture | Response | undefined {
    const { memory } = this.#tools;
    const requested = this.#requestedFor(request);
    const { key, coalesced } = requested;
    if (head.status === 304 && request.refreshes !== undefined) {
      if (requested.unvalidated !== undefined) this.#confirm(request, requested.unvalidated, head.fields, true);
      this.#onEnd(request);
      return undefined;
    }
    if (request.validation !== undefined) {
      if (head.status === 304 && requested.unvalidated !== undefined) {
        return this.#validated(request, requested.unvalidated, head);
      }
      this.#tools.count(this.#route, "miss");
    }
    const entry = this.#storable(request, head, framing);
    if (entry === undefined) {
      // The stored response is obsolete, unless the upstream failed or the 304 is about the client's copy.
      if (head.status < 500 && head.status !== 304) memory.delete(key);
      this.#onEnd(request);
      return undefined;
    }
    let pieces: Buffer[] = [];
    let bytes = 0;
    let isFinished = false;
    const end = (): void => {
      isFinished = true;
      pieces = [];
      memory.free(bytes);
      this.#onEnd(request);
    };
    return {
      data: (piece) => {
        if (isFinished) return;
        if (bytes + piece.length > this.#maxBodyBytes || !memory.reserve(piece.length)) return end();
        bytes += piece.length;
        // Copied, since the read buffer is reused.
        pieces.push(Buffer.from(piece));
      },
      end: () => {
        if (isFinished) return;
        if (this.#isValid(request, entry)) {
          this.#put(request, key, { ...entry, body: Buffer.concat(pieces) });
          this.#pausedUntilMs.delete(coalesced);
        }
        end();
      },
      abandon: () => {
        if (!isFinished) end();
      },
    };
  }

  /** The entry to store, without its body; undefined if not storable. */
  #storable(request: RequestContext, head: ResponseHead, framing: Framing): Omit<Entry, "body"> | undefined {
    const { fields } = head;
    if (!mayStore(head, framing, this.#vary, this.#maxBodyBytes)) return undefined;
    const policy = responsePolicy(fields, this.#tools.clock.now());
    if (policy.forbidsStoring || (this.#overrides && policy.needsValidation)) return undefined;
    // Set-Cookie is personal, unless the response itself excludes it from storage.
    if (hasField(fields, "set-cookie") && policy.withheldFields?.has("set-cookie") !== true) return undefined;
    const times = this.#timesOf(request, fields, policy);
    const isUsable = times.freshForMs + times.staleForMs > 0 || hasValidator(fields);
    if (!isUsable) return undefined;
    const { epoch, changes } = this.#requestedFor(request);
    return { route: this.#route, epoch, changes, fields: fieldsToStore(fields, policy), ...times };
  }

  #timesOf(
    request: RequestContext,
    fields: Readonly<RawFields>,
    { lifetimeS, needsValidation, forbidsStale, staleWhileRevalidateS }: ResponsePolicy,
  ): Pick<Entry, "receivedMs" | "initialAgeMs" | "freshForMs" | "staleForMs" | "forbidsStale"> {
    const { clock } = this.#tools;
    const receivedMs = clock.monotonic();
    const isExplicit = lifetimeS !== undefined && !this.#overrides;
    const ageMs = initialAgeMs(fields, {
      receivedMs: clock.now(),
      delayMs: Math.max(0, receivedMs - this.#requestedFor(request).requestedMs),
      isDateCounted: isExplicit,
    });
    const lifetimeMs = isExplicit ? lifetimeS * 1000 : this.#ttlMs;
    const staleMs =
      staleWhileRevalidateS === undefined || this.#overrides ? this.#staleMs : staleWhileRevalidateS * 1000;
    const isNeverFresh = needsValidation && !this.#overrides;
    return {
      receivedMs,
      initialAgeMs: ageMs,
      freshForMs: isNeverFresh ? 0 : this.#overrides ? lifetimeMs : lifetimeMs - ageMs,
      staleForMs: forbidsStale || isNeverFresh ? 0 : staleMs,
      forbidsStale: forbidsStale || isNeverFresh,
    };
  }

  /** Stores a response; one that varies on coding has a key of its own per representation. */
  #put(request: RequestContext, key: string, entry: Entry): void {
    const { memory, clock } = this.#tools;
    const now = clock.monotonic();
    if (!variesOnCoding(entry.fields)) return memory.put(key, entry, now);
    const coding = contentCoding(entry.fields) ?? "";
    const { identity } = acceptedCodings(request.fields);
    const name = coding === "identity" ? identity : coding;
    const known = memory.get(key, now)?.codings ?? [];
    const others = known.filter((_text, at) => known[at - (at % 2)] !== identity);
    const codings = [...others.slice(2 - 2 * MAX_CHOICES), identity, name];
    // It has no freshness: it lasts until the route is purged or it is evicted.
    memory.put(key, { ...entry, fields: [], body: NO_BYTES, codings }, now);
    memory.put(codingKey(key, name), entry, now);
  }

  #validated(request: RequestContext, unvalidated: Entry, head: ResponseHead): Response {
    this.#notify(request, "revalidated");
    const entry = this.#confirm(request, unvalidated, head.fields, false);
    this.#onEnd(request);
    const response = responseOf(request, entry, 0);
    // Cookies are personal.
    response.fields.push(...filterFields(head.fields, (name) => name === "set-cookie"));
    return response;
  }

  /** The upstream confirmed a stored response; updates its fields (RFC 9111, 3.2). */
  #confirm(request: RequestContext, entry: Entry, fields: RawFields, isConfirmed: boolean): Entry {
    const { memory, clock } = this.#tools;
    const { key, epoch, changes } = this.#requestedFor(request);
    if (!confirms(fields, entry.fields)) {
      memory.delete(key);
      return entry;
    }
    const updated = updatedFields(entry.fields, fields);
    const policy = responsePolicy(updated, clock.now());
    // The age of the 304 becomes that of the stored response.
    const times = this.#timesOf(request, [...updated, ...filterFields(fields, (name) => name === "age")], policy);
    const renewed = { ...entry, epoch, changes, ...times, fields: fieldsToStore(updated, policy), isConfirmed };
    const head = { status: 200, reason: "", fields: updated };
    const isStorable = mayStore(head, lengthFraming(entry.body.length), this.#vary, this.#maxBodyBytes);
    if (!isStorable || policy.forbidsStoring || (this.#overrides && policy.needsValidation)) memory.delete(key);
    else if (this.#isValid(request, entry) && this.#isValid(request, renewed)) {
      // The entry may have been replaced since the request was sent.
      if (this.#entryFor(request, key) === entry) this.#put(request, key, renewed);
    }
    return renewed;
  }

  #asks(request: RequestContext, key: string, coalesced: string, unvalidated?: Entry): void {
    const { changed, clock } = this.#tools;
    const requested = {
      key,
      coalesced,
      epoch: this.#state.epoch,
      changes: changed.count,
      requestedMs: clock.monotonic(),
    };
    this.#requested.set(request, unvalidated === undefined ? requested : { ...requested, unvalidated });
  }

  #requestedFor(request: RequestContext): Asked {
    return this.#requested.get(request.refreshes ?? request) ?? NEVER;
  }

  /** True if neither a purge nor a known change occurred since the request was sent. */
  #isValid(request: RequestContext, { epoch, changes }: RequestState): boolean {
    return epoch === this.#state.epoch && !this.#tools.changed.hasChanged(request, changes);
  }

  abandon(request: RequestContext): void {
    if (request.validation !== undefined) this.#tools.count(this.#route, "miss");
    this.#onEnd(request);
  }

  #onEnd(request: RequestContext): void {
    const { key, coalesced } = this.#requestedFor(request);
    if (request.refreshes !== undefined) this.#pause(request, key, coalesced);
    this.#state.coalescer.end(coalesced, request);
  }

  #pause(request: RequestContext, key: string, coalesced: string): void {
    const now = this.#tools.clock.monotonic();
    const entry = this.#entryFor(request, key);
    const isStale = entry !== undefined && now - entry.receivedMs >= entry.freshForMs;
    if (!isStale) return;
    for (const [known, untilMs] of this.#pausedUntilMs) if (untilMs <= now) this.#pausedUntilMs.delete(known);
    this.#pausedUntilMs.set(ownText(coalesced), now + REFRESH_PAUSE_MS);
  }

  #notify(request: RequestContext, outcome: CacheOutcome): void {
    mark(request, outcome);
    this.#tools.count(this.#route, outcome);
  }
}

/** Sets X-Cache. */
function mark(request: RequestContext, outcome: CacheOutcome): void {
  const at = request.responseFields?.indexOf("X-Cache") ?? -1;
  if (at === -1) request.addResponseField("X-Cache", outcome);
  else request.responseFields?.splice(at + 1, 1, outcome);
}

const NO_BYTES = Buffer.alloc(0);
const codingKey = (key: string, coding: string): string => `${key}\n\n${coding}`;

/** Requests with different accepted codings are not coalesced. */
const coalescingKey = (request: RequestContext, key: string): string =>
  codingKey(key, acceptedCodings(request.fields).identity);

const hasValidator = (fields: Readonly<RawFields>): boolean => conditionsFor(fields).length > 0;

/** The policy without freshness requirements. */
function withoutFreshness({ noStore, onlyIfCached }: RequestPolicy): RequestPolicy {
  return noStore || onlyIfCached ? { ...ANY_FRESH, noStore, onlyIfCached } : ANY_FRESH;
}

/** True if a stored response is fresh enough for a request. */
function allows(policy: RequestPolicy, entry: Entry, residentMs: number): boolean {
  const freshMs = entry.freshForMs - residentMs;
  if (policy.noCache || entry.initialAgeMs + residentMs > policy.maxAgeMs) return false;
  return policy.minFreshMs === 0 || freshMs >= policy.minFreshMs;
}

function responseOf(request: RequestContext, entry: Entry, residentMs: number): Response {
  const age = ["Age", String(Math.floor((entry.initialAgeMs + residentMs) / 1000))];
  if (!isUnchanged(request.fields, entry.fields)) {
    return { status: 200, fields: [...entry.fields, ...age], body: entry.body };
  }
  return { status: 304, fields: [...filterFields(entry.fields, (name) => OF_304.has(name)), ...age], body: "" };
}

function fieldsToStore(fields: Readonly<RawFields>, { withheldFields }: ResponsePolicy): RawFields {
  const stored = filterFields(fields, (name) => !NOT_STORED.has(name) && withheldFields?.has(name) !== true);
  // A cached response needs a Date (RFC 9110, 6.6.1).
  if (!hasField(stored, "date")) stored.push("Date", new Date().toUTCString());
  return stored;
}

/** Stored fields updated with those of a 304. */
function updatedFields(stored: Readonly<RawFields>, fields: Readonly<RawFields>): RawFields {
  const updates = filterFields(fields, (name) => !OF_BODY.has(name) && !NOT_STORED.has(name));
  const updated = [...stored];
  // A 304 without Date counts as generated now (RFC 9110, 6.6.1).
  removeField(updated, "date");
  for (let at = 0; at < updates.length; at += 2) removeField(updated, (updates[at] ?? "").toLowerCase());
  updated.push(...updates);
  return updated;
}

function filterFields(fields: Readonly<RawFields>, isKept: (lowerName: string) => boolean): RawFields {
  const kept: RawFields = [];
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] ?? "";
    if (isKept(name.toLowerCase())) kept.push(name, fields[at + 1] ?? "");
  }
  return kept;
}
