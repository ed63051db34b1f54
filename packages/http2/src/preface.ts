/** What a client says first (RFC 9113, 3.4); no request of HTTP/1.1 begins so. */
export const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");

/** Whether the first bytes of a connection are the preface; `maybe`: they are less than that, and the same so far. */
export function beginsAsHttp2(first: Buffer): "yes" | "no" | "maybe" {
  if (first.length === 0) return "maybe";
  // The first letter decides for nearly all requests of HTTP/1.1.
  if (first[0] !== PREFACE[0]) return "no";
  const common = Math.min(first.length, PREFACE.length);
  if (first.compare(PREFACE, 0, common, 0, common) !== 0) return "no";
  return common === PREFACE.length ? "yes" : "maybe";
}
