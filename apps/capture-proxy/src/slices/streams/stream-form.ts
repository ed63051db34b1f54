import type { JsonStreamForm } from "@headworks/event-stream";
import { parseContentEncoding } from "@headworks/http-fields/content-coding";
import { fieldValue, fieldValues } from "@headworks/http1";
import type { RawFields } from "@headworks/http1";
import type { ExchangeView } from "#exchange/exchange.ts";
import { DECODABLE } from "./response-decoder.ts";
import type { DecodableCoding } from "./response-decoder.ts";

/** How a response body is split into frames. */
export type StreamForm = { readonly kind: "sse" } | { readonly kind: "json"; readonly form: JsonStreamForm };

const SSE: StreamForm = { kind: "sse" };
const LINES: StreamForm = { kind: "json", form: "lines" };
const CONCATENATED: StreamForm = { kind: "json", form: "concatenated" };
const SEQUENCE: StreamForm = { kind: "json", form: "sequence" };
const ARRAY: StreamForm = { kind: "json", form: "array" };

const FORMS: ReadonlyMap<string, StreamForm> = new Map<string, StreamForm>([
  ["text/event-stream", SSE],
  ["application/x-ndjson", LINES],
  ["application/ndjson", LINES],
  ["application/jsonl", LINES],
  ["application/x-jsonl", LINES],
  ["application/jsonlines", LINES],
  ["application/x-jsonlines", LINES],
  ["application/json-lines", LINES],
  ["application/stream+json", CONCATENATED],
  ["application/x-json-stream", CONCATENATED],
  ["application/json-seq", SEQUENCE],
  ["application/geo+json-seq", SEQUENCE],
]);

/** Google's models respond with one array that grows by an element at a time. */
const STREAMED_ARRAY = ":streamGenerateContent";

/** The stream form of a response; undefined for responses that are no stream or cannot be decoded. */
export function streamForm({ request, response }: Pick<ExchangeView, "request" | "response">): StreamForm | undefined {
  if (response === undefined) return undefined;
  const type = fieldValue(response.fields, "content-type");
  if (type === undefined) return undefined;
  const form = formOf(type, request.path);
  if (form === undefined || !bringsBody(request.method, response.status)) return undefined;
  return contentCoding(response.fields) === "unknown" ? undefined : form;
}

/** The body's content coding; `unknown` for unsupported and for multiple codings. */
export function contentCoding(fields: Readonly<RawFields>): DecodableCoding | "none" | "unknown" {
  const [coding, ...more] = parseContentEncoding(fieldValues(fields, "content-encoding"));
  if (coding === undefined) return "none";
  return (more.length === 0 ? DECODABLE.find((known) => known === coding) : undefined) ?? "unknown";
}

function formOf(contentType: string, path: string): StreamForm | undefined {
  const semicolon = contentType.indexOf(";");
  const type = (semicolon === -1 ? contentType : contentType.slice(0, semicolon)).trim().toLowerCase();
  if (type === "application/json") return path.includes(STREAMED_ARRAY) ? ARRAY : undefined;
  return FORMS.get(type);
}

function bringsBody(method: string, status: number): boolean {
  return method !== "HEAD" && status >= 200 && status !== 204 && status !== 304;
}
