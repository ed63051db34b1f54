import { createHash } from "node:crypto";
import type {
  MockMiss,
  MockServing,
  ServingMatch,
  StartServing,
  TrafficEntry,
  mocksOperations,
} from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import { hostPortText } from "@headworks/host-patterns";
import { parseQuery, prefersHtml } from "@headworks/http-fields";
import { fieldValue, hasField, type RawFields, withoutHopByHop } from "@headworks/http1";
import { ApiError, notFound } from "#api/api-error.ts";
import { type Exchange, exchangeUrl } from "#exchange/exchange.ts";
import { CONTINUE, type SyntheticResponse, type Verdict } from "#exchange/phases.ts";
import type { CaptureStore } from "#storage/capture-store.ts";

/** A recorded session that responds in place of all origins. */
export interface ServedSession {
  /** Responds to an unmatched exchange. Never throws: in strict mode errors must not reach an origin. */
  response(exchange: Exchange): Verdict | Promise<Verdict>;
  broken(exchange: Exchange, error: unknown): Verdict;
  /** Tunnels cannot be replayed from a recording. */
  target(host: string, port: number): Verdict;
  status(): MockServing;
  /** Newest first. */
  misses(): readonly MockMiss[];
}

interface ServedSessionParts {
  readonly captured: CaptureStore;
  readonly nowMs: () => number;
  readonly onFault: (error: unknown) => void;
}

const MAX_BODY_BYTES = 67_108_864;
const MAX_MISSES = 1000;
const MAX_CANDIDATES = 500;
const MAX_NEAR = 3;

const NOT_SERVING: MockServing = {
  serving: false,
  session_id: null,
  session_name: null,
  strict: true,
  repeat: "last",
  match: matchParts(),
  started_at: null,
  recorded: 0,
  skipped: 0,
  answered: 0,
  missed: 0,
};

async function serveSession(
  parts: ServedSessionParts,
  start: StartServing,
  sessionName: string | null,
  signal: AbortSignal,
): Promise<ServedSession> {
  const match = matchParts(start.match);
  const record = await readSession(parts.captured, start.session_id, match, signal);
  return new SessionServer(parts, start, sessionName, match, record);
}

class SessionServer implements ServedSession {
  readonly #parts: ServedSessionParts;
  readonly #match: MatchParts;
  readonly #record: SessionRecord;
  readonly #sessionId: string;
  readonly #sessionName: string | null;
  readonly #isStrict: boolean;
  readonly #repeat: "last" | "cycle" | "none";
  readonly #startedAtMs: number;
  readonly #byPath = new Map<string, RecordedGroup[]>();
  readonly #byAuthority = new Map<string, RecordedGroup[]>();
  readonly #misses: MockMiss[] = [];
  #answered = 0;
  #missed = 0;

  constructor(
    parts: ServedSessionParts,
    start: StartServing,
    sessionName: string | null,
    match: MatchParts,
    record: SessionRecord,
  ) {
    this.#parts = parts;
    this.#match = match;
    this.#record = record;
    this.#sessionId = start.session_id;
    this.#sessionName = sessionName;
    this.#isStrict = start.strict ?? true;
    this.#repeat = start.repeat ?? "last";
    this.#startedAtMs = parts.nowMs();
    for (const group of record.groups.values()) {
      const facts = group.exchanges[0]?.facts;
      if (facts === undefined) continue;
      listed(this.#byPath, facts.path, group);
      listed(this.#byAuthority, facts.authority, group);
    }
  }

  status(): MockServing {
    return {
      serving: true,
      session_id: this.#sessionId,
      session_name: this.#sessionName,
      strict: this.#isStrict,
      repeat: this.#repeat,
      match: this.#match,
      started_at: new Date(this.#startedAtMs).toISOString(),
      recorded: this.#record.recorded,
      skipped: this.#record.skipped,
      answered: this.#answered,
      missed: this.#missed,
    };
  }

  misses(): readonly MockMiss[] {
    return this.#misses.toReversed();
  }

  target(host: string, port: number): Verdict {
    if (!this.#isStrict) return CONTINUE;
    const miss = this.#miss(
      "CONNECT",
      hostPortText(host, port),
      "A tunnel cannot be replayed from a recorded session",
      [],
    );
    return { kind: "respond", response: missPage(miss, false) };
  }

  async response(exchange: Exchange): Promise<Verdict> {
    try {
      return await this.#response(exchange);
    } catch (error) {
      return this.broken(exchange, error);
    }
  }

  broken(exchange: Exchange, error: unknown): Verdict {
    this.#parts.onFault(error);
    return this.#refuse(exchange, "The response could not be made; see the log", []);
  }

  async #response(exchange: Exchange): Promise<Verdict> {
    const { request } = exchange;
    let body = "";
    if (this.#match.body) {
      const content = await exchange.requestContent(MAX_BODY_BYTES);
      if (content.kind === "too-large") return this.#refuse(exchange, "The request's body is too large to compare", []);
      if (content.kind === "complete") body = bodyDigest(content.bytes);
    }
    const { method, scheme, host, port, path } = request;
    const facts = matchFacts(this.#match, { method, scheme, host, port, target: path, body });
    const group = this.#record.groups.get(matchKey(this.#match, facts));
    if (group === undefined) {
      return this.#refuse(exchange, "This request was not recorded", this.#near(facts));
    }
    const recorded = this.#take(group);
    if (recorded === undefined) {
      const reason = `All ${group.exchanges.length} recorded responses to this request were used`;
      return this.#refuse(exchange, reason, []);
    }
    const bytes = recorded.hasBody ? await storedBody(this.#parts.captured, recorded.entryId, "response") : undefined;
    if (recorded.hasBody && bytes === undefined) {
      return this.#refuse(exchange, "The recorded response is no longer stored", []);
    }
    this.#answered += 1;
    exchange.addTrace({
      kind: "mock",
      ruleId: this.#sessionId,
      ruleName: `Session ${this.#sessionName ?? this.#sessionId}`,
      phase: "request",
      changes: [`answered with ${recorded.status} from entry ${recorded.entryId}`],
    });
    return { kind: "respond", response: recordedResponse(recorded, bytes ?? Buffer.alloc(0)) };
  }

  /** In recorded order, also for concurrent requests. */
  #take(group: RecordedGroup): RecordedExchange | undefined {
    const { exchanges } = group;
    const index = group.next;
    group.next += 1;
    if (group.next >= exchanges.length && this.#repeat !== "none") {
      group.next = this.#repeat === "cycle" ? 0 : exchanges.length - 1;
    }
    return exchanges[index];
  }

  #refuse(exchange: Exchange, reason: string, near: MockMiss["near"]): Verdict {
    const { request } = exchange;
    const miss = this.#miss(request.method, exchangeUrl(request), reason, near);
    if (!this.#isStrict) return CONTINUE;
    exchange.addTrace({
      kind: "mock",
      ruleId: this.#sessionId,
      ruleName: `Session ${this.#sessionName ?? this.#sessionId}`,
      phase: "request",
      changes: ["answered with 502: not in the served session"],
    });
    return { kind: "respond", response: missPage(miss, prefersHtml(fieldValue(request.fields, "accept"))) };
  }

  #miss(method: string, url: string, reason: string, near: MockMiss["near"]): MockMiss {
    const miss = { timestamp: new Date(this.#parts.nowMs()).toISOString(), method, url, reason, near };
    this.#missed += 1;
    this.#misses.push(miss);
    if (this.#misses.length > MAX_MISSES) this.#misses.shift();
    return miss;
  }

  /** Candidates with the same path first, then of the same host, a few hundred at most. */
  #near(requested: MatchFacts): MockMiss["near"] {
    const groups = new Set<RecordedGroup>();
    const pools = [this.#byPath.get(requested.path) ?? [], this.#byAuthority.get(requested.authority) ?? []];
    for (const pool of pools) for (const group of pool.slice(0, MAX_CANDIDATES / 2)) groups.add(group);
    const compared = [...groups].flatMap((group) => {
      const [first] = group.exchanges;
      return first === undefined ? [] : [{ first, ...differenceOf(this.#match, first.facts, requested) }];
    });
    return compared
      .toSorted((a: Difference, b: Difference) => a.distance - b.distance)
      .slice(0, MAX_NEAR)
      .map(({ first, differences }) => ({
        entry_id: first.entryId,
        method: first.method,
        url: first.url,
        differences: [...differences],
      }));
  }
}

function listed(lists: Map<string, RecordedGroup[]>, key: string, group: RecordedGroup): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [group]);
  else list.push(group);
}

/** The recorded bytes, still content-coded, with new framing. */
function recordedResponse(recorded: RecordedExchange, body: Buffer): SyntheticResponse {
  const isHead = recorded.method === "HEAD";
  const kept: RawFields = [];
  const passed = withoutHopByHop(recorded.fields);
  for (let at = 0; at < passed.length; at += 2) {
    const lowerName = (passed[at] ?? "").toLowerCase();
    const isFraming = lowerName === "transfer-encoding" || (lowerName === "content-length" && !isHead);
    if (!isFraming) kept.push(passed[at] ?? "", passed[at + 1] ?? "");
  }
  // A response without a body keeps its recorded length; so do 304 and 204.
  const saysLength = isHead || hasField(kept, "content-length") || recorded.status === 204 || recorded.status === 304;
  const fields = saysLength ? kept : [...kept, "Content-Length", String(body.length)];
  const reason = recorded.reason ?? "";
  return { status: recorded.status, ...(reason === "" ? {} : { reason }), fields, body };
}

function missPage(miss: MockMiss, isHtml: boolean): SyntheticResponse {
  const text = isHtml ? htmlPage(miss) : textPage(miss);
  const body = Buffer.from(text);
  return {
    status: 502,
    fields: [
      "Content-Type",
      isHtml ? "text/html; charset=utf-8" : "text/plain; charset=utf-8",
      "Content-Length",
      String(body.length),
      "Cache-Control",
      "no-store",
      "X-Weir-Mock-Error",
      "not-recorded",
    ],
    body,
  };
}

function textPage({ method, url, reason, near }: MockMiss): string {
  const lines = [`502 ${reason}`, "", `${method} ${url}`, "", "A recorded session is served; no request was sent."];
  if (near.length > 0) lines.push("", "Closest recorded requests:");
  for (const each of near) {
    lines.push(`- ${each.method} ${each.url} (entry ${each.entry_id})`);
    for (const difference of each.differences) lines.push(`    ${difference}`);
  }
  return `${lines.join("\n")}\n`;
}

function htmlPage({ method, url, reason, near }: MockMiss): string {
  const items = near.map(({ method: nearMethod, url: nearUrl, entry_id: id, differences }) => {
    const details = differences.map((difference) => `<li>${escapeHtml(difference)}</li>`).join("");
    return `<li><code>${escapeHtml(`${nearMethod} ${nearUrl}`)}</code> (entry ${escapeHtml(id)})<ul>${details}</ul></li>`;
  });
  const nearest = near.length === 0 ? "" : `<p>Closest recorded requests:</p><ul>${items.join("")}</ul>`;
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Not recorded</title>
<style>:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:10vh auto;padding:0 1.5rem}
h1{font-size:1.25rem}code{font:13px ui-monospace,monospace;overflow-wrap:anywhere}</style></head>
<body><h1>${escapeHtml(reason)}</h1><p><code>${escapeHtml(`${method} ${url}`)}</code></p>
<p>Weir serves a recorded session; nothing was sent anywhere.</p>${nearest}</body></html>
`;
}

function escapeHtml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}

/** A recorded exchange; its response body stays in the store. */
interface RecordedExchange {
  readonly entryId: string;
  readonly method: string;
  readonly url: string;
  readonly facts: MatchFacts;
  readonly status: number;
  readonly reason: string | null;
  readonly fields: RawFields;
  readonly hasBody: boolean;
}

/** Exchanges with equal requests, oldest first. */
interface RecordedGroup {
  readonly exchanges: RecordedExchange[];
  /** Index of the next response; past the end when all were used. */
  next: number;
}

interface SessionRecord {
  readonly groups: ReadonlyMap<string, RecordedGroup>;
  readonly recorded: number;
  readonly skipped: number;
}

const PAGE = 1000;
const MAX_ENTRIES = 200_000;

/** Reads the heads of a session, and digests of request bodies where they count. */
async function readSession(
  captured: CaptureStore,
  sessionId: string,
  parts: MatchParts,
  signal: AbortSignal,
): Promise<SessionRecord> {
  const exchanges: RecordedExchange[] = [];
  let skipped = 0;
  let cursor: string | null = "";
  while (cursor !== null) {
    const { json, total } = await captured.listEntries({
      filter: { session_id: sessionId },
      limit: PAGE,
      offset: 0,
      cursor,
      includeBodies: false,
      signal,
    });
    if (total > MAX_ENTRIES) {
      throw new ApiError("CONFLICT", `A session of more than ${MAX_ENTRIES} entries cannot be served; it has ${total}`);
    }
    const page = JSON.parse(Buffer.from(json).toString()) as { entries: TrafficEntry[]; next_cursor: string | null };
    for (const entry of page.entries) {
      const exchange = wasServed(entry, sessionId) ? undefined : await recordedExchange(captured, entry, parts);
      if (exchange === undefined) skipped += 1;
      else exchanges.push(exchange);
    }
    cursor = page.next_cursor;
  }
  const groups = new Map<string, RecordedGroup>();
  for (const exchange of exchanges.reverse()) {
    const key = matchKey(parts, exchange.facts);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { exchanges: [exchange], next: 0 });
    else group.exchanges.push(exchange);
  }
  return { groups, recorded: exchanges.length, skipped };
}

/** Responses that the session itself gave while served and recorded do not come from an origin. */
function wasServed(entry: TrafficEntry, sessionId: string): boolean {
  return entry.trace.some((step) => step.rule_id === sessionId);
}

/** Undefined for unfinished exchanges, protocol switches, and responses not stored completely. */
async function recordedExchange(
  captured: CaptureStore,
  { id, state, request, response, is_passthrough: isTunnel }: TrafficEntry,
  parts: MatchParts,
): Promise<RecordedExchange | undefined> {
  if (isTunnel || state !== "complete" || response === null || response.status_code < 200) return undefined;
  if (response.body_state === "truncated" || response.body_state === "not_stored") return undefined;
  const url = URL.parse(request.url);
  if (url === null) return undefined;
  const body = parts.body && request.body_state !== "none" ? bodyDigest(await storedBody(captured, id, "request")) : "";
  return {
    entryId: id,
    method: request.method,
    url: request.url,
    facts: matchFacts(parts, {
      method: request.method,
      scheme: url.protocol.replace(/:$/, ""),
      host: url.hostname.replace(/^\[|\]$/g, ""),
      port: url.port === "" ? undefined : Number(url.port),
      target: request.path,
      body,
    }),
    status: response.status_code,
    reason: response.status_message,
    fields: response.headers_list.flat(),
    hasBody: response.body_state === "complete",
  };
}

/** The encoded bytes of a body, read in parts; undefined when they are gone. */
async function storedBody(
  captured: CaptureStore,
  id: string,
  side: "request" | "response",
): Promise<Buffer | undefined> {
  const pieces: Uint8Array[] = [];
  let start = 0;
  for (;;) {
    const part = await captured.readBody(id, side, { decoded: false, utf8: false, start, end: undefined });
    if (part === undefined) return undefined;
    pieces.push(part.bytes);
    start += part.bytes.length;
    if (start >= part.totalBytes || part.bytes.length === 0) return Buffer.concat(pieces);
  }
}

interface MatchFacts {
  readonly method: string;
  readonly scheme: string;
  /** With the effective port. */
  readonly authority: string;
  /** Without the query. */
  readonly path: string;
  /** Decoded and sorted, without ignored parameters; repeated names stay. */
  readonly query: readonly (readonly [name: string, value: string])[];
  /** SHA-256 of the body as sent; empty without a body, and where bodies do not count. */
  readonly body: string;
}

type MatchParts = Required<ServingMatch>;

function matchParts(match: ServingMatch = {}): MatchParts {
  return {
    method: match.method ?? true,
    scheme: match.scheme ?? false,
    host: match.host ?? true,
    path: match.path ?? true,
    query: match.query ?? true,
    ignore_query: match.ignore_query ?? [],
    body: match.body ?? false,
  };
}

const PORTS: Readonly<Record<string, number>> = { http: 80, https: 443, ws: 80, wss: 443 };

/** `target` is path and query as sent. */
function matchFacts(
  parts: MatchParts,
  request: {
    readonly method: string;
    readonly scheme: string;
    readonly host: string;
    readonly port: number | undefined;
    readonly target: string;
    readonly body: string;
  },
): MatchFacts {
  const mark = request.target.indexOf("?");
  const ignored = new Set(parts.ignore_query);
  const query = parseQuery(mark === -1 ? "" : request.target.slice(mark))
    .filter(({ name }) => !ignored.has(name))
    .map(({ name, value }) => [name, value] as const)
    .sort(([name, value], [otherName, otherValue]) =>
      name === otherName ? compare(value, otherValue) : compare(name, otherName),
    );
  return {
    method: request.method,
    scheme: request.scheme,
    authority: `${request.host}:${request.port ?? PORTS[request.scheme] ?? 0}`,
    path: mark === -1 ? request.target : request.target.slice(0, mark),
    query,
    body: request.body,
  };
}

function compare(left: string, right: string): number {
  return left < right ? -1 : left > right ? 1 : 0;
}

/** Equal for requests that count as the same. */
function matchKey(parts: MatchParts, facts: MatchFacts): string {
  // Without the host, the port would still distinguish http from https.
  return JSON.stringify([
    parts.method ? facts.method : null,
    parts.scheme ? facts.scheme : null,
    parts.host ? facts.authority : null,
    parts.path ? facts.path : null,
    parts.query ? facts.query : null,
    parts.body ? facts.body : null,
  ]);
}

/** Empty for no body. */
function bodyDigest(bytes: Uint8Array | undefined): string {
  return bytes === undefined || bytes.length === 0 ? "" : createHash("sha256").update(bytes).digest("hex");
}

/** The distance of two requests, and their differences in words. */
interface Difference {
  readonly distance: number;
  readonly differences: readonly string[];
}

const MAX_QUOTED_LENGTH = 80;

function differenceOf(parts: MatchParts, recorded: MatchFacts, requested: MatchFacts): Difference {
  const differences: string[] = [];
  let distance = 0;
  const note = (weight: number, text: string): void => {
    distance += weight;
    differences.push(text);
  };
  if (parts.method && recorded.method !== requested.method) {
    note(3, differs("method", recorded.method, requested.method));
  }
  if (parts.scheme && recorded.scheme !== requested.scheme) {
    note(1, differs("scheme", recorded.scheme, requested.scheme));
  }
  if (parts.host && recorded.authority !== requested.authority) {
    note(5, differs("host", recorded.authority, requested.authority));
  }
  if (parts.path && recorded.path !== requested.path) {
    note(2 + 2 * segmentDistance(recorded.path, requested.path), differs("path", recorded.path, requested.path));
  }
  if (parts.query) for (const text of queryDifferences(recorded.query, requested.query)) note(1, text);
  if (parts.body && recorded.body !== requested.body) note(1, "the body differs");
  return { distance, differences };
}

function differs(what: string, recorded: string, requested: string): string {
  return `${what}: recorded \`${recorded.slice(0, MAX_QUOTED_LENGTH)}\`, requested \`${requested.slice(0, MAX_QUOTED_LENGTH)}\``;
}

function segmentDistance(left: string, right: string): number {
  const a = left.split("/", 64);
  const b = right.split("/", 64);
  let distance = 0;
  for (let index = 0; index < Math.max(a.length, b.length); index += 1) if (a[index] !== b[index]) distance += 1;
  return distance;
}

const MAX_PARAMETERS = 50;

function queryDifferences(recorded: MatchFacts["query"], requested: MatchFacts["query"]): string[] {
  const before = valuesByName(recorded);
  const now = valuesByName(requested);
  const names = [...new Set([...before.keys(), ...now.keys()])].slice(0, MAX_PARAMETERS);
  return names.flatMap((name) => {
    const was = before.get(name);
    const is = now.get(name);
    if (was === is) return [];
    const shown = name.slice(0, MAX_QUOTED_LENGTH);
    if (is === undefined) return [`query \`${shown}\` is missing`];
    if (was === undefined) return [`query \`${shown}\` was not recorded`];
    return [differs(`query \`${shown}\``, was, is)];
  });
}

function valuesByName(query: MatchFacts["query"]): Map<string, string> {
  const values = new Map<string, string>();
  for (const [name, value] of query) values.set(name, values.has(name) ? `${values.get(name)}, ${value}` : value);
  return values;
}

type ServingHandlers = Pick<
  Handlers<typeof mocksOperations>,
  "getMockServing" | "startMockServing" | "stopMockServing" | "listMockMisses"
>;

export interface Serving {
  readonly current: () => ServedSession | undefined;
  readonly handlers: ServingHandlers;
}

export function createServing(
  parts: ServedSessionParts & { readonly captured: CaptureStore; readonly onChange: () => void },
): Serving {
  let current: ServedSession | undefined;
  const status = () => ({ status: 200, body: current?.status() ?? NOT_SERVING }) as const;
  return {
    current: () => current,
    handlers: {
      getMockServing: status,
      startMockServing: async ({ body, signal }) => {
        const session = await parts.captured.getSession(body.session_id);
        if (session === undefined) return notFound("session");
        await parts.captured.flush();
        current = await serveSession(parts, body, session.name, signal);
        parts.onChange();
        return status();
      },
      stopMockServing: () => {
        current = undefined;
        parts.onChange();
        return status();
      },
      listMockMisses: ({ query }) => {
        const { limit = 100, offset = 0 } = query;
        const misses = current?.misses() ?? [];
        return {
          status: 200,
          headers: { "x-total-count": String(misses.length) },
          body: misses.slice(offset, offset + limit),
        };
      },
    },
  };
}
