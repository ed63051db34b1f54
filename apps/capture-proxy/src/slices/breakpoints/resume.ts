import { ApiError } from "#api/api-error.ts";
import { exchangeUrl, type RequestMessage, type ResponseMessage } from "#exchange/exchange.ts";
import { CONTINUE, type SyntheticResponse, type Verdict } from "#exchange/phases.ts";
import { joinedFields } from "#exchange/shown-message.ts";
import type { Decision } from "./decision.ts";
import { editableBody, encodeBody, encodeEditedText } from "./editable-body.ts";
import { checkedFields, type DraftBody, edited, type Edited } from "./message-draft.ts";
import { leaveTrace, type Paused } from "./paused-exchanges.ts";

const MAX_SHOWN_LENGTH = 200;

/** A validated decision; carrying it out cannot fail. */
export interface PreparedDecision {
  readonly delayMs: number;
  /** Applies the changes and returns the verdict. */
  carryOut(): Verdict;
}

/** Validates a decision without touching the exchange. Throws 400 or 409. */
export async function prepare(
  paused: Paused,
  decision: Decision,
  limits: { readonly bodyLimitBytes: number },
): Promise<PreparedDecision> {
  switch (decision.action) {
    case "continue":
      return at(() => {
        leaveTrace(paused, []);
        return CONTINUE;
      });
    case "abort":
      return at(() => {
        leaveTrace(paused, ["closed without a response"]);
        return { kind: "abort", reason: `Rejected at the breakpoint ${paused.rule.name}`, closes: true };
      });
    case "respond": {
      const response = await madeUp(decision);
      return at(() => {
        leaveTrace(paused, [`answered with ${response.status}`]);
        return { kind: "respond", response };
      });
    }
    case "modify": {
      const result = await edit(paused, decision.steps, limits.bodyLimitBytes);
      return { delayMs: decision.delayMs, carryOut: () => change(paused, result) };
    }
  }
}

function at(carryOut: () => Verdict): PreparedDecision {
  return { delayMs: 0, carryOut };
}

async function edit(
  paused: Paused,
  steps: (Decision & { action: "modify" })["steps"],
  limitBytes: number,
): Promise<Edited> {
  const { exchange, side } = paused;
  if (side === "request") {
    const { request } = exchange;
    return await edited({ side, message: request }, await draftBody(paused, request.fields, limitBytes), steps);
  }
  const { response } = exchange;
  if (response === undefined) throw new ApiError("CONFLICT", "There is no response to edit");
  return await edited({ side, message: response }, await draftBody(paused, response.fields, limitBytes), steps);
}

async function draftBody({ content }: Paused, fields: string[], limitBytes: number): Promise<DraftBody> {
  switch (content?.kind) {
    case "complete": {
      const { bytes } = content;
      return { kind: "whole", content: bytes, editable: await editableBody(bytes, fields, limitBytes) };
    }
    case undefined:
      return { kind: "fixed", why: "The body is still arriving: it can be edited once it is complete" };
    case "too-large":
      return { kind: "fixed", why: "The body is larger than breakpoint_body_limit and cannot be edited" };
    case "stream":
      return { kind: "fixed", why: "The body is an endless stream and cannot be edited" };
    case "gone":
      return { kind: "fixed", why: "The exchange has ended" };
  }
}

function change(paused: Paused, result: Edited): Verdict {
  const { exchange } = paused;
  const changes: string[] = [];
  if (result.side === "request") {
    changes.push(...requestChanges(exchange.request, result.message));
    if (changes.length > 0) Object.assign(exchange.changeRequest(), result.message);
  } else if (exchange.response !== undefined) {
    changes.push(...responseChanges(exchange.response, result.message));
    if (changes.length > 0) Object.assign(exchange.changeResponse(), result.message);
  }
  if (result.content !== undefined) {
    const beforeBytes = paused.content?.kind === "complete" ? paused.content.bytes.length : 0;
    changes.push(bodyChange(beforeBytes, result.content.length));
    if (result.side === "request") exchange.setRequestContent(result.content);
    else exchange.setResponseContent(result.content);
  }
  leaveTrace(paused, changes);
  return CONTINUE;
}

/** Statuses whose responses have no content (RFC 9110 sections 15.3.5, 15.3.6 and 15.4.5). */
const WITHOUT_CONTENT = new Set([204, 205, 304]);

async function madeUp(decision: Decision & { action: "respond" }): Promise<SyntheticResponse> {
  const { status, reason, body } = decision;
  const fields = checkedFields(decision.fields, "body/headers");
  const isTyped = decision.fields.some(([name]) => name.toLowerCase() === "content-type");
  const plain = body.form === "bytes" ? body.bytes : encodeEditedText(body.text, fields, undefined);
  if (plain.length > 0 && !isTyped) {
    fields.push("Content-Type", body.form === "text" ? "text/plain; charset=utf-8" : "application/octet-stream");
  }
  const content = WITHOUT_CONTENT.has(status) ? Buffer.alloc(0) : await encodeBody(plain, fields);
  if (status !== 204 && status !== 304) fields.push("Content-Length", String(content.length));
  return { status, ...(reason === undefined ? {} : { reason }), fields, body: content };
}

/** Human-readable changes of a request. */
export function requestChanges(before: Readonly<RequestMessage>, after: Readonly<RequestMessage>): string[] {
  const changes: string[] = [];
  if (before.method !== after.method) changes.push(`method ${before.method} to ${after.method}`);
  const [from, to] = [exchangeUrl(before), exchangeUrl(after)];
  if (from !== to) changes.push(`url ${shortened(from)} to ${shortened(to)}`);
  return [...changes, ...fieldChanges(before.fields, after.fields)];
}

/** Human-readable changes of a response. */
export function responseChanges(before: Readonly<ResponseMessage>, after: Readonly<ResponseMessage>): string[] {
  const changes: string[] = [];
  if (before.status !== after.status) changes.push(`status ${before.status} to ${after.status}`);
  if (before.reason !== after.reason) changes.push("status message");
  return [...changes, ...fieldChanges(before.fields, after.fields)];
}

function bodyChange(beforeBytes: number, afterBytes: number): string {
  return `body ${beforeBytes} to ${afterBytes} bytes`;
}

function fieldChanges(before: readonly string[], after: readonly string[]): string[] {
  const was = byName(before);
  const is = byName(after);
  const changes: string[] = [];
  for (const [lower, { name, value }] of is) if (was.get(lower)?.value !== value) changes.push(`set header ${name}`);
  for (const [lower, { name }] of was) if (!is.has(lower)) changes.push(`removed header ${name}`);
  return changes;
}

function byName(fields: readonly string[]): Map<string, { name: string; value: string }> {
  return new Map(
    Object.entries(joinedFields([...fields])).map(([name, value]) => [name.toLowerCase(), { name, value }]),
  );
}

function shortened(text: string): string {
  return text.length <= MAX_SHOWN_LENGTH ? text : `${text.slice(0, MAX_SHOWN_LENGTH)}…`;
}
