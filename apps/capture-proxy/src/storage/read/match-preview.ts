import { setImmediate as nextTurn } from "node:timers/promises";
import type { Condition } from "@headworks/capture-contract";
import { readJson } from "@headworks/json";
import { compileCondition } from "@headworks/match-condition";
import type { BodyText, CompiledCondition, Explanation, MatchSubject } from "@headworks/match-condition";
import type { QueryRecord } from "@headworks/query-language";
import type { SqlRow } from "../database.ts";
import { FLAG_PASSTHROUGH } from "../write/entry-record.ts";
import { CancelledError, type EntrySource, type Cancellation } from "../search/filtered-set.ts";
import type { PreviewRequest } from "./reader-client.ts";
import { RECORD_COLUMNS, RECORD_HEAD_COLUMNS, RowRecord } from "./row-record.ts";

/** Time slice before other requests run. */
const TURN_MS = 10;
/** Users wait for the preview while typing. */
const MAX_MS = 2000;
const ROWS_AT_A_TIME = 100;

/** Numbers of matching entries, newest first. */
export interface FoundMatches {
  readonly examined: number;
  readonly matched: number;
  readonly complete: boolean;
  readonly seqs: readonly number[];
}

/** Tries a condition on the newest entries in time slices, without tunnels. Stops after `maxMs`. */
export async function matchPreview(
  source: EntrySource,
  request: PreviewRequest,
  cancellation: Cancellation,
  maxMs = MAX_MS,
): Promise<FoundMatches> {
  const { scope, phases, limit, sample } = request;
  const condition = compiledCondition(request);
  const select = source.database.prepare(
    `SELECT ${RECORD_COLUMNS}, ${RECORD_HEAD_COLUMNS} FROM entry e JOIN head h ON h.seq = e.seq
     WHERE e.session = ? AND e.seq > ? AND e.seq < ? AND (e.flags & ${FLAG_PASSTHROUGH}) = 0 ORDER BY e.seq DESC LIMIT ?`,
  );
  const endsMs = performance.now() + maxMs;
  const found = { examined: 0, matched: 0, complete: true, seqs: [] as number[] };
  let turnEndsMs = performance.now() + TURN_MS;
  let below = Number.MAX_SAFE_INTEGER;
  while (found.examined < limit) {
    const max = Math.min(ROWS_AT_A_TIME, limit - found.examined);
    const rows = select.all(scope.number, scope.floorSeq, below, max);
    for (const row of rows) {
      below = Number(row["seq"]);
      found.examined += 1;
      if (holds(row)) {
        found.matched += 1;
        if (found.seqs.length < sample) found.seqs.push(below);
      }
      if (performance.now() < turnEndsMs) continue;
      await nextTurn();
      if (cancellation.cancelled) throw new CancelledError();
      if (performance.now() > endsMs) return { ...found, complete: false };
      turnEndsMs = performance.now() + TURN_MS;
    }
    if (rows.length < max) break;
  }
  return found;

  function holds(row: SqlRow): boolean {
    const record = new RowRecord(row, scope.id, source.bodies);
    const texts = new RecordTexts(record);
    return phases.some(
      (phase) =>
        (phase === "request" || record.status !== undefined) &&
        condition.matches(new RecordSubject(record, texts, phase)),
    );
  }
}

/** Explains the condition for an entry in the last phase it reached; undefined if the session lacks it. */
export function explainMatch(source: EntrySource, request: PreviewRequest): Explanation | undefined {
  const { scope, phases, explain } = request;
  if (explain === undefined) return undefined;
  const row = source.database
    .prepare(
      `SELECT ${RECORD_COLUMNS}, ${RECORD_HEAD_COLUMNS} FROM entry e JOIN head h ON h.seq = e.seq
       WHERE e.id = ? AND e.session = ? AND e.seq > ?`,
    )
    .get(explain, scope.number, scope.floorSeq);
  if (row === undefined) return undefined;
  const record = new RowRecord(row, scope.id, source.bodies);
  const phase = phases.includes("response") && record.status !== undefined ? "response" : "request";
  return compiledCondition(request).explain(new RecordSubject(record, new RecordTexts(record), phase));
}

function compiledCondition({ condition }: PreviewRequest): CompiledCondition {
  return compileCondition(readJson(condition) as unknown as Condition);
}

/** Decoded bodies of one record, cached. */
class RecordTexts {
  readonly #record: QueryRecord;
  readonly #known = new Map<"request" | "response", BodyText>();

  constructor(record: QueryRecord) {
    this.#record = record;
  }

  of(side: "request" | "response"): BodyText {
    if (!this.#known.has(side)) {
      this.#known.set(side, side === "request" ? this.#record.requestText() : this.#record.responseText());
    }
    return this.#known.get(side);
  }
}

class RecordSubject implements MatchSubject {
  readonly phase: "request" | "response";
  readonly #record: QueryRecord;
  readonly #texts: RecordTexts;

  constructor(record: QueryRecord, texts: RecordTexts, phase: "request" | "response") {
    this.#record = record;
    this.#texts = texts;
    this.phase = phase;
  }

  get method(): string {
    return this.#record.method;
  }
  get scheme(): string {
    return this.#record.scheme;
  }
  get host(): string {
    return this.#record.host;
  }
  get port(): number {
    return this.#record.port;
  }
  get path(): string {
    return this.#record.path;
  }
  get query(): string {
    return this.#record.query;
  }
  get url(): string {
    return this.#record.url;
  }
  get status(): number | undefined {
    return this.phase === "request" ? undefined : this.#record.status;
  }
  requestFields(): readonly string[] {
    return this.#record.requestFields();
  }
  responseFields(): readonly string[] {
    return this.phase === "request" ? [] : this.#record.responseFields();
  }
  requestText(): BodyText {
    return this.#texts.of("request");
  }
  responseText(): BodyText {
    return this.phase === "request" ? undefined : this.#texts.of("response");
  }
}
