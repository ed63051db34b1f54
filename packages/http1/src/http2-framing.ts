import { fieldValues } from "./fields.ts";
import { CHUNKED, lengthFraming, type Framing, type RawFields } from "./message.ts";

const LENGTH = /^[0-9]{1,15}$/;

/**
 * The framing announced by HTTP/2 fields: a length, or none, which becomes chunked over HTTP/1.1. Undefined if they
 * are invalid or contradictory (RFC 9113, 8.1.1).
 */
export function announcedFraming(fields: Readonly<RawFields>): Framing | undefined {
  const lengths = fieldValues(fields, "content-length");
  const [length] = lengths;
  if (length === undefined) return CHUNKED;
  return lengths.length === 1 && LENGTH.test(length) ? lengthFraming(Number(length)) : undefined;
}
