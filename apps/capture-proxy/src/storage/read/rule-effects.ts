import type { RequestData, ResponseData, RuleTrace } from "@headworks/capture-contract";
import type { ExchangeView, Original, RequestMessage, ResponseMessage, TraceStep } from "#exchange/exchange.ts";
import type { SqlRow } from "../database.ts";
import { shownRequest, shownResponse } from "#exchange/shown-message.ts";
import type { BodyFacts } from "#exchange/shown-message.ts";
import { parsed } from "./stored-json.ts";

/** Rule effects as sent to the writer and stored; replaced bodies are separate. */
export interface EffectRecord {
  readonly trace: readonly RuleTrace[];
  readonly request: RequestMessage | null;
  readonly response: ResponseMessage | null;
  /** Sizes of the replaced bodies; -1 if not replaced. */
  readonly requestBytes: number;
  readonly responseBytes: number;
}

/** Columns of `effect` in addition to those of an entry and its head. */
export const EFFECT_COLUMNS =
  "f.trace, f.original, f.request_body AS original_request_body, f.response_body AS original_response_body, " +
  "length(f.request_body) AS original_request_bytes, length(f.response_body) AS original_response_bytes";

/** For responses without bodies. */
export function withoutReplacedBodies(row: SqlRow): SqlRow {
  return { ...row, original_request_body: null, original_response_body: null };
}

/**
 * Rule effects of a finished exchange; undefined if no rule applied. `storesBodies` false sheds replaced bodies, too.
 */
export function effectOf(
  { trace, originalRequest, originalResponse }: ExchangeView,
  storesBodies: boolean,
): EffectRecord | undefined {
  if (trace === undefined && originalRequest === undefined && originalResponse === undefined) return undefined;
  return {
    trace: (trace ?? []).map(traceOf),
    request: originalRequest?.message ?? null,
    response: originalResponse?.message ?? null,
    requestBytes: (storesBodies ? originalRequest?.body?.length : undefined) ?? -1,
    responseBytes: (storesBodies ? originalResponse?.body?.length : undefined) ?? -1,
  };
}

function traceOf({ kind, ruleId, ruleName, phase, changes }: TraceStep): RuleTrace {
  return { kind, rule_id: ruleId, rule_name: ruleName, phase, changes: [...changes] };
}

/** In the order of {@link EffectRecord}. */
export function replacedBodies({ originalRequest, originalResponse }: ExchangeView): Buffer[] {
  return [originalRequest, originalResponse].flatMap((original: Original<unknown> | undefined) => original?.body ?? []);
}

/** Body bytes that {@link shownEffect} adds: the replaced bodies, or the sent one again where only the head changed. */
export function originalBodyBytes(
  row: SqlRow,
  passedOn: { readonly request: number; readonly response: number },
): number {
  const original = parsed<Pick<EffectRecord, "request" | "response">>(row["original"]);
  const given = (side: "request" | "response"): number => {
    const replaced = row[`original_${side}_bytes`];
    return original?.[side] ? (typeof replaced === "number" ? replaced : passedOn[side]) : 0;
  };
  return given("request") + given("response");
}

type ShownEffect = {
  readonly trace: RuleTrace[];
  readonly original_request: RequestData | null;
  readonly original_response: ResponseData | null;
};

/** The body of the message as sent. */
type PassedOn = Pick<RequestData, "body" | "body_encoding" | "body_size" | "body_stored_size" | "body_state">;

/** Members of an entry that describe rule effects. A body that was not replaced is the sent one. */
export function shownEffect(
  row: SqlRow,
  request: PassedOn,
  response: PassedOn | null,
  durationMs: number,
): ShownEffect {
  const trace = parsed<RuleTrace[]>(row["trace"]) ?? [];
  const original = parsed<Pick<EffectRecord, "request" | "response">>(row["original"]);
  const [sent, received] = [original?.request, original?.response];
  return {
    trace,
    original_request: sent ? withBody((body) => shownRequest(sent, body), row, "request", request) : null,
    original_response: received
      ? withBody((body) => shownResponse(received, body, durationMs), row, "response", response)
      : null,
  };
}

/** Uses the replaced body if there is one, otherwise the sent one. */
function withBody<T extends RequestData | ResponseData>(
  show: (body: BodyFacts) => T,
  row: SqlRow,
  side: "request" | "response",
  passedOn: PassedOn | null,
): T {
  const replaced = row[`original_${side}_bytes`];
  if (typeof replaced === "number") {
    const bytes = row[`original_${side}_body`];
    return show({
      bytes: bytes instanceof Uint8Array && replaced > 0 ? bytes : undefined,
      sizeBytes: replaced,
      storedBytes: replaced,
      state: replaced === 0 ? "none" : "complete",
    });
  }
  if (passedOn === null) return show({ bytes: undefined, sizeBytes: 0, storedBytes: 0, state: "none" });
  const { body, body_encoding, body_size: sizeBytes, body_stored_size: storedBytes, body_state: state } = passedOn;
  return { ...show({ bytes: undefined, sizeBytes, storedBytes, state }), body, body_encoding };
}
