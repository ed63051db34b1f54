import type { RawFields } from "./message.ts";

/**
 * Fields that change framing, routing, the connection, authentication or how the body is read, and therefore may
 * not come after it (RFC 9110 section 6.5.1).
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

/** The fields of a trailer section that may be there; the same list when all may. */
export function allowedTrailers(fields: RawFields): RawFields {
  let kept: RawFields | undefined;
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] ?? "";
    if (HEAD_ONLY.has(name.toLowerCase())) kept ??= fields.slice(0, at);
    else kept?.push(name, fields[at + 1] ?? "");
  }
  return kept ?? fields;
}
