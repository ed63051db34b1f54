/** Fields that frame the request or belong to the connection; a configuration must not set them. */
const OWN_FIELDS = new Set([
  "connection",
  "content-length",
  "content-type",
  "expect",
  "host",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "user-agent",
]);

/** The problem of a configured field name, as a sentence; undefined for none. */
export function fieldNameIssue(name: string): string | undefined {
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name)) return "The name is not a legal header name.";
  if (OWN_FIELDS.has(name.toLowerCase())) return "This header is set by the gateway itself.";
  return undefined;
}

/**
 * The problem of a configured field value (RFC 9110 section 5.5), as a sentence without the value; undefined for
 * none.
 */
export function fieldValueIssue(value: string): string | undefined {
  if (/[^\t\x20-\x7e\x80-\xff]/.test(value)) {
    return "The value contains a control character or one that headers cannot carry.";
  }
  if (/^[\t ]|[\t ]$/.test(value)) return "The value begins or ends with white space.";
  return undefined;
}
