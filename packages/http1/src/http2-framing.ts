import { fieldValues } from "./fields.ts";
import { CHUNKED, lengthFraming, type Framing, type RawFields } from "./message.ts";

const LENGTH = /^[0-9]{1,15}$/;

/**
 * How the fields of HTTP/2 announce the body behind them: by a length, or not at all, which over HTTP/1.1 is chunked. Undefined
 * when what they say means nothing, or two things (RFC 9113, 8.1.1).
 */
export function announcedFraming(fields: Readonly<RawFields>): Framing | undefined {
  const lengths = fieldValues(fields, "content-length");
  const [length] = lengths;
  if (length === undefined) return CHUNKED;
  return lengths.length === 1 && LENGTH.test(length) ? lengthFraming(Number(length)) : undefined;
}
