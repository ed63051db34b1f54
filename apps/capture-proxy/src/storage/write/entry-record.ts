import type { Failure } from "@headworks/capture-contract";
import type { FieldLines, RawFields } from "@headworks/http1";
import type { EntryStateCode } from "../read/entry-facts.ts";
import type { EffectRecord } from "../read/rule-effects.ts";

/** Indexes are stored in `entry.*_body_state`. */
export const BODY_STATES = ["none", "complete", "truncated", "not_stored"] as const;
export const NOT_STORED = BODY_STATES.indexOf("not_stored");

/** Whether a running state of the entry was stored before; "maybe" if the writer thread ended meanwhile. */
export const RECORDED_BEFORE = ["no", "yes", "maybe"] as const;
export type RecordedBefore = (typeof RECORDED_BEFORE)[number];

/** An entry as sent to the writer, a JSON array. */
export type EntryRecord = [
  seq: number,
  /** Index into {@link RECORDED_BEFORE}. */
  before: number,
  id: string,
  sessionNumber: number,
  state: EntryStateCode,
  startedMs: number,
  method: string,
  scheme: string,
  host: string,
  port: number,
  path: string,
  status: number | null,
  statusMessage: string | null,
  requestType: string | null,
  responseType: string | null,
  resourceType: string,
  durationUs: number | null,
  ttfbUs: number | null,
  requestSize: number,
  responseSize: number | null,
  requestVersion: string | null,
  responseVersion: string | null,
  flags: number,
  source: string,
  clientAddress: string | null,
  serverAddress: string | null,
  connection: number | null,
  /** JSON, stored as is. */
  timings: string,
  requestTrailers: RawFields | null,
  responseTrailers: RawFields | null,
  failure: Failure | null,
  requestBody: BodyRecord,
  responseBody: BodyRecord,
  /** Imported entries only. */
  note: string | null,
  effect: EffectRecord | null,
];

/** `inlineBytes` follow in the batch memory in order; `spooled` is the number of a file written earlier. */
export type BodyRecord = [size: number, stored: number, state: number, inlineBytes: number, spooled: number];

/** Separator of the parts of an entry; neither JSON nor field lines contain it. */
export const PART_END = "\0";

/**
 * Joins the parts of an entry: the record, then request fields, response fields and TLS facts, which are stored as is
 * and empty if absent. Fields are the received field lines if available, otherwise JSON.
 */
export function entryText(
  record: EntryRecord,
  request: FieldsOfMessage,
  response: FieldsOfMessage | undefined,
  tls: string,
): string {
  const responseText = response === undefined ? "" : fieldsText(response);
  return `${JSON.stringify(record)}${PART_END}${fieldsText(request)}${PART_END}${responseText}${PART_END}${tls}`;
}

interface FieldsOfMessage {
  readonly fields: Readonly<RawFields>;
  readonly fieldLines?: FieldLines;
}

/** Never empty: an empty part means no message. */
function fieldsText({ fields, fieldLines }: FieldsOfMessage): string {
  return fieldLines === undefined || fieldLines === "" ? JSON.stringify(fields) : fieldLines;
}

export const NO_BODY: BodyRecord = [0, 0, 0, 0, 0];
