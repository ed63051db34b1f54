import { readJson } from "@headworks/json";
import { utf8Reading } from "@headworks/http-fields";

/** A message in comparable form: first line, headers, body. */
interface ShownMessage {
  readonly headers_list: readonly (readonly [string, string])[];
  readonly body: string | null;
  readonly body_encoding: "utf8" | "base64" | null;
}

interface ShownRequest extends ShownMessage {
  readonly method: string;
  readonly url: string;
}

interface ShownResponse extends ShownMessage {
  readonly status_code: number;
  readonly status_message: string | null;
}

/** Longer bodies are compared without indentation. */
const MAX_INDENTED = 400_000;

/** A header value for display: marked UTF-8, or octets. Different octets stay distinguishable. */
export function valueText(octets: string): string {
  const reading = utf8Reading(octets);
  return reading === undefined ? octets : `${reading} (UTF-8)`;
}

/** First line and headers of a message, one per line. */
export function headLines(message: ShownRequest | ShownResponse): readonly string[] {
  const first =
    "method" in message
      ? `${message.method} ${message.url}`
      : `${message.status_code}${message.status_message === null || message.status_message === "" ? "" : ` ${message.status_message}`}`;
  return [first, ...message.headers_list.map(([name, value]) => `${name}: ${valueText(value)}`)];
}

/** The lines of a body: JSON indented, binary data as base64. */
export function bodyLines({ body, body_encoding: encoding }: ShownMessage): readonly string[] {
  if (body === null || body === "") return [];
  if (encoding === "base64") return body.match(/.{1,76}/gu) ?? [];
  return indented(body).split(/\r\n|\n|\r/u);
}

function indented(text: string): string {
  return indentedJson(text) ?? text;
}

/** Indented JSON; null if the text is not JSON, too long, or would be altered by parsing. */
export function indentedJson(text: string): string | null {
  if (text.length > MAX_INDENTED || !/^\s*[[{]/u.test(text)) return null;
  try {
    const value: unknown = readJson(text);
    const compact = text.replaceAll(/"(?:[^"\\]|\\.)*"|\s+/gu, (part) => (part.startsWith('"') ? part : ""));
    return JSON.stringify(value) === compact ? JSON.stringify(value, null, 2) : null;
  } catch {
    return null;
  }
}

/** JSON for comparison, one member per line. */
export function jsonLines(value: unknown): readonly string[] {
  return (JSON.stringify(value, null, 2) ?? "").split("\n");
}
