import type { MockMiss, MockServing, StartServing } from "@headworks/capture-contract";
import { hostPortText } from "@headworks/host-patterns";
import { prefersHtml } from "@headworks/http-fields";
import { fieldValue, hasField, type RawFields, withoutHopByHop } from "@headworks/http1";
import { type Exchange, exchangeUrl } from "#exchange/exchange.ts";
import { CONTINUE, type SyntheticResponse, type Verdict } from "#exchange/phases.ts";
import type { CaptureStore } from "#storage/capture-store.ts";
import {
  bodyDigest,
  type Difference,
  differenceOf,
  matchFacts,
  type MatchFacts,
  matchKey,
  matchParts,
  type MatchParts,
} from "./match-key.ts";
import {
  readSession,
  type RecordedExchange,
  type RecordedGroup,
  type SessionRecord,
  storedBody,
} from "./session-record.ts";

/** A recorded session that responds in place of all origins. */
export interface ServedSession {
  /**
   * Responds to an exchange without a matching rule. Never throws, since errors must not reach an origin in strict
   * mode.
   */
  response(exchange: Exchange): Verdict | Promise<Verdict>;
  broken(exchange: Exchange, error: unknown): Verdict;
  /** Tunnels cannot be replayed from a recording. */
  target(host: string, port: number): Verdict;
  status(): MockServing;
  /** Newest first. */
  misses(): readonly MockMiss[];
}

export interface ServedSessionParts {
  readonly captured: CaptureStore;
  readonly nowMs: () => number;
  readonly onFault: (error: unknown) => void;
}

const MAX_BODY_BYTES = 67_108_864;
const MAX_MISSES = 1000;
const MAX_CANDIDATES = 500;
const MAX_NEAR = 3;

export const NOT_SERVING: MockServing = {
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

export async function serveSession(
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
