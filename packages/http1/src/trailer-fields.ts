import type { RawFields } from "./message.ts";

/**
 * Fields that affect framing, routing, the connection, authentication or content processing and so are not allowed in
 * trailers (RFC 9110 section 6.5.1).
 */
const HEAD_ONLY = new Set([
  "authorization",
  "cache-control",
  "connection",
  "content-encoding",
  "content-length",
  "content-range",
  "content-type",
  "cookie",
  "expect",
  "host",
  "keep-alive",
  "max-forwards",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "range",
  "set-cookie",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "www-authenticate",
]);

/** The allowed fields of a trailer section; the same list if all are allowed. */
export function allowedTrailers(fields: RawFields): RawFields {
  let kept: RawFields | undefined;
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] ?? "";
    if (HEAD_ONLY.has(name.toLowerCase())) kept ??= fields.slice(0, at);
    else kept?.push(name, fields[at + 1] ?? "");
  }
  return kept ?? fields;
}
