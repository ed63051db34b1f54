import { createHash } from "node:crypto";

/** The body of `sizeBytes` that the origin sends and the load client expects: JSON text that compresses little. */
export function answeredBody(sizeBytes: number): Buffer {
  const start = '{"items":"';
  const end = '"}';
  let text = start;
  for (let block = 0; text.length < sizeBytes; block += 1) {
    text += createHash("sha512").update(`block ${block}`).digest("base64");
  }
  return Buffer.from(text.slice(0, sizeBytes - end.length) + end, "latin1");
}
