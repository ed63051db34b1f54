/** Fields of HTTP/1 connections, which are forbidden in HTTP/2 (RFC 9113, 8.2.2); Host becomes `:authority`. */
const FORBIDDEN = new Set([
  "connection",
  "host",
  "http2-settings",
  "keep-alive",
  "proxy-connection",
  "transfer-encoding",
  "upgrade",
]);

/**
 * Appends fields `[name0, value0, name1, …]` to `into` for HTTP/2: names in lower case, without fields of HTTP/1
 * connections, TE only as `trailers`.
 */
export function appendHttp2Fields(fields: readonly string[], into: string[]): void {
  for (let at = 0; at < fields.length; at += 2) {
    const name = (fields[at] ?? "").toLowerCase();
    const value = fields[at + 1] ?? "";
    if (FORBIDDEN.has(name) || (name === "te" && value.toLowerCase() !== "trailers")) continue;
    into.push(name, value);
  }
}

/**
 * The fields of an HTTP/2 field section without pseudo-fields. Cookie fields are joined, as all other protocols
 * expect (RFC 9113, 8.2.3).
 */
export function withoutPseudoFields(section: readonly string[]): string[] {
  const fields: string[] = [];
  let cookieAt = -1;
  for (let at = 0; at < section.length; at += 2) {
    const name = section[at] ?? "";
    const value = section[at + 1] ?? "";
    if (name.startsWith(":")) continue;
    if (name === "cookie") {
      if (cookieAt !== -1) {
        fields[cookieAt] = `${fields[cookieAt]}; ${value}`;
        continue;
      }
      cookieAt = fields.length + 1;
    }
    fields.push(name, value);
  }
  return fields;
}
