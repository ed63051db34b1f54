import { BODY_STATES } from "../write/entry-record.ts";
import { MemberError } from "./checked-members.ts";
import type { CheckedMembers } from "./checked-members.ts";
import { bodyStateCode, keptBytes, targetOfUrl } from "./imported-entry.ts";
import type { ImportedMessage, ImportedTarget } from "./imported-entry.ts";

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/u;
/** Bytes as characters, without controls except tab. */
const FIELD_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/u;

/** Throws {@link MemberError}, like all functions here, if it is missing or invalid. */
export function methodOf(request: CheckedMembers): string {
  const method = request.text("method");
  return TOKEN.test(method) ? method : request.refuse("method", "is not a method");
}

export function statusOf(response: CheckedMembers): number {
  const status = response.whole("status_code") ?? response.refuse("status_code", "is missing");
  return status <= 999 ? status : response.refuse("status_code", "is not a status");
}

export function urlTarget(request: CheckedMembers): ImportedTarget {
  try {
    return targetOfUrl(request.text("url"));
  } catch (error) {
    if (error instanceof MemberError) throw error;
    return request.refuse("url", "is not a URL that can be captured");
  }
}

/** A body that was read before its entry. */
export interface FoundBody {
  readonly body: ImportedMessage["body"];
  /** Total size; `body` is shorter if truncated. */
  readonly totalBytes: number;
}

/** One side of an entry; large bodies are found already. */
export function importedMessage(members: CheckedMembers, found: FoundBody | undefined): ImportedMessage {
  const state = members.oneOf("body_state", BODY_STATES) ?? (members.boolean("truncated") ? "truncated" : null);
  const isCut = found !== undefined && keptBytes(found.body) < found.totalBytes;
  return {
    fields: fieldsOf(members, "headers_list") ?? joinedFields(members),
    trailers: fieldsOf(members, "trailers_list"),
    contentType: members.optionalText("content_type"),
    body: found === undefined ? bodyOf(members) : found.body,
    bodySize: Math.max(members.whole("body_size") ?? 0, found?.totalBytes ?? 0),
    bodyState: bodyStateCode(isCut ? "truncated" : state),
  };
}

function fieldsOf(members: CheckedMembers, name: string): string[] | null {
  const pairs = members.array(name);
  return (
    pairs &&
    pairs.flatMap((pair, index): string[] => {
      if (!Array.isArray(pair) || pair.length !== 2) {
        return members.refuse(`${name}[${index}]`, "is not a name and a value");
      }
      const [field, value] = pair as readonly unknown[];
      if (typeof field !== "string" || !TOKEN.test(field)) {
        return members.refuse(`${name}[${index}]`, "has no field name");
      }
      if (typeof value !== "string" || !FIELD_VALUE.test(value)) {
        return members.refuse(`${name}[${index}]`, "has a value that no field can have");
      }
      return [field, value];
    })
  );
}

/** For documents without `headers_list`. */
function joinedFields(members: CheckedMembers): string[] {
  const headers = members.raw("headers");
  if (headers === null) return [];
  if (typeof headers !== "object" || Array.isArray(headers)) return members.refuse("headers", "is not an object");
  return Object.entries(headers).flatMap(([field, value]: [string, unknown]) => {
    if (!TOKEN.test(field) || typeof value !== "string") return members.refuse("headers", "holds what is no field");
    return value.split("\n").flatMap((line) => {
      return FIELD_VALUE.test(line) ? [field, line] : members.refuse("headers", "holds a value that no field can have");
    });
  });
}

/** Undefined without a body. */
function bodyOf(members: CheckedMembers): Uint8Array | undefined {
  const text = members.optionalText("body");
  if (text === null) return undefined;
  if (!isBase64Body(members, text)) return Buffer.from(text, "utf8");
  return base64Bytes(withoutPrefix(text)) ?? members.refuse("body", "is not base64");
}

/** Whether a body that starts with this text is base64. */
export function isBase64Body(members: CheckedMembers, text: string): boolean {
  const encoding = members.oneOf("body_encoding", ["utf8", "base64"]);
  return encoding === "base64" || (encoding === null && text.startsWith(BASE64_PREFIX));
}

const BASE64_PREFIX = "base64:";

/** Removes the base64 prefix. */
export function withoutPrefix(text: string): string {
  return text.startsWith(BASE64_PREFIX) ? text.slice(BASE64_PREFIX.length) : text;
}

/** Strict: Buffer skips invalid characters and stops at padding. */
export function base64Bytes(text: string): Uint8Array | undefined {
  if (text.length % 4 !== 0) return undefined;
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  const bytes = Buffer.from(text, "base64");
  return bytes.length === (text.length / 4) * 3 - padding ? bytes : undefined;
}
