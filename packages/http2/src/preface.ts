/** The client connection preface (RFC 9113, 3.4); no valid HTTP/1.1 request begins like this. */
export const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");

/** Whether the input begins with the preface; `maybe`: it is a prefix of it. */
export function beginsAsHttp2(first: Buffer): "yes" | "no" | "maybe" {
  if (first.length === 0) return "maybe";
  // The first byte decides for nearly all HTTP/1.1 requests.
  if (first[0] !== PREFACE[0]) return "no";
  const common = Math.min(first.length, PREFACE.length);
  if (first.compare(PREFACE, 0, common, 0, common) !== 0) return "no";
  return common === PREFACE.length ? "yes" : "maybe";
}
