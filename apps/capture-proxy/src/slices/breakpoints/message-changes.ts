import { exchangeUrl } from "#exchange/exchange.ts";
import type { RequestMessage, ResponseMessage } from "#exchange/exchange.ts";
import { joinedFields } from "#exchange/shown-message.ts";

/** What an edit changed in a request, for people. */
export function requestChanges(before: Readonly<RequestMessage>, after: Readonly<RequestMessage>): string[] {
  const changes: string[] = [];
  if (before.method !== after.method) changes.push(`method ${before.method} to ${after.method}`);
  const [from, to] = [exchangeUrl(before), exchangeUrl(after)];
  if (from !== to) changes.push(`url ${shortened(from)} to ${shortened(to)}`);
  return [...changes, ...fieldChanges(before.fields, after.fields)];
}

/** What an edit changed in an answer, for people. */
export function responseChanges(before: Readonly<ResponseMessage>, after: Readonly<ResponseMessage>): string[] {
  const changes: string[] = [];
  if (before.status !== after.status) changes.push(`status ${before.status} to ${after.status}`);
  if (before.reason !== after.reason) changes.push("status message");
  return [...changes, ...fieldChanges(before.fields, after.fields)];
}

/** What a replaced body is called. */
export function bodyChange(beforeBytes: number, afterBytes: number): string {
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

const MAX_SHOWN_LENGTH = 200;

function shortened(text: string): string {
  return text.length <= MAX_SHOWN_LENGTH ? text : `${text.slice(0, MAX_SHOWN_LENGTH)}…`;
}
