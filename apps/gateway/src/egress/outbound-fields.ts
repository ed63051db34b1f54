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

/** What is wrong with the name of a configured field, as a sentence; undefined if nothing is. */
export function fieldNameIssue(name: string): string | undefined {
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name)) return "The name is not a legal header name.";
  if (OWN_FIELDS.has(name.toLowerCase())) return "This header is set by the gateway itself.";
  return undefined;
}

/**
 * What is wrong with the value of a configured field (RFC 9110 section 5.5), as a sentence without the value; undefined
 * if nothing is.
 */
export function fieldValueIssue(value: string): string | undefined {
  if (/[^\t\x20-\x7e\x80-\xff]/.test(value)) {
    return "The value contains a control character or one that headers cannot carry.";
  }
  if (/^[\t ]|[\t ]$/.test(value)) return "The value begins or ends with white space.";
  return undefined;
}
