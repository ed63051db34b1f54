import type { Failure } from "@headworks/capture-contract";
import type { FieldLines, RawFields } from "@headworks/http1";
import type { EntryStateCode } from "../read/entry-facts.ts";
import type { EffectRecord } from "../read/rule-effects.ts";

/** Codes of `entry.*_body_state`. */
export const BODY_STATES = ["none", "complete", "truncated", "not_stored"] as const;
/** The code of a body whose bytes are missing. */
export const NOT_STORED = BODY_STATES.indexOf("not_stored");

/** Whether an entry was recorded while it was running; "maybe" if the thread that was to store it ended. */
export const RECORDED_BEFORE = ["no", "yes", "maybe"] as const;
export type RecordedBefore = (typeof RECORDED_BEFORE)[number];

/** One entry on its way to the writer, as a JSON array. */
export type EntryRecord = [
  seq: number,
  /** Which of {@link RECORDED_BEFORE}. */
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
  /** JSON, stored unread. */
  timings: string,
  requestTrailers: RawFields | null,
  responseTrailers: RawFields | null,
  failure: Failure | null,
  requestBody: BodyRecord,
  responseBody: BodyRecord,
  /** Only imported entries come with one. */
  note: string | null,
  effect: EffectRecord | null,
];

/** `inlineBytes` are taken from the batch's memory in order; `spooled` names a body that was sent ahead. */
export type BodyRecord = [size: number, stored: number, state: number, inlineBytes: number, spooled: number];

/** Between the parts of an entry: neither JSON nor the lines of fields have it. */
export const PART_END = "\0";

/**
 * An entry travels as parts of one text: its record, and what the writer stores unread: the request's fields, the answer's
 * and facts of TLS, empty where there are none. Fields are the lines that they were read from where there are such, JSON
 * where not.
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

/** Never empty: that would be no message. */
function fieldsText({ fields, fieldLines }: FieldsOfMessage): string {
  return fieldLines === undefined || fieldLines === "" ? JSON.stringify(fields) : fieldLines;
}

/** There is none. */
export const NO_BODY: BodyRecord = [0, 0, 0, 0, 0];
