import { FLAG, FRAME, frame, GET, section } from "./http2-frames.ts";
import type { Http2Case } from "./http2-cases.ts";

const COMPRESSION_ERROR = 9;
const whole = section(GET);

/** A request whose field block begins and ends with more than it should. */
function request(before: readonly number[], behind: readonly number[]): Buffer {
  const block = Buffer.concat([Buffer.from(before), whole, Buffer.from(behind)]);
  return frame(FRAME.headers, FLAG.endHeaders | FLAG.endStream, 1, block);
}

/** What may not stand behind the fields of a request, by section of RFC 7541. */
const BROKEN: readonly (readonly [section: string, what: string, bytes: readonly number[]])[] = [
  ["2.3.3", "an index beyond the tables", [0xff, 0x00]],
  ["6.1", "the index 0", [0x80]],
  ["4.2", "a table size behind the first field", [0x20]],
  ["5.1", "a number without an end", Array.from({ length: 13 }, () => 0xff)],
  ["5.2", "a text longer than its block", [0, 5, 97]],
  ["5.2", "the end of Huffman's alphabet inside a text", [0, 1, 97, 0x84, 0xff, 0xff, 0xff, 0xff]],
  ["5.2", "padding of Huffman codes with zeros", [0, 1, 97, 0x81, 0x18]],
  ["5.2", "padding of Huffman codes by a byte too many", [0, 1, 97, 0x82, 0x1f, 0xff]],
];

/** Field blocks that cannot be read, which leave the state of the connection unknown (RFC 9113, 4.3). */
export const HPACK_CASES: readonly Http2Case[] = [
  ...BROKEN.map(([number, what, behind]): Http2Case => ({
    section: `4.3 and RFC 7541, ${number}`,
    what,
    bytes: [request([], behind)],
    outcome: { kind: "connection error", codes: [COMPRESSION_ERROR] },
  })),
  {
    section: "4.3 and RFC 7541, 6.3",
    what: "a table size above the limit",
    bytes: [request([0x3f, 0xe1, 0xff, 0x03], [])],
    outcome: { kind: "connection error", codes: [COMPRESSION_ERROR] },
  },
  {
    section: "4.3 and RFC 7541, 6.3",
    what: "a table size below the limit",
    bytes: [request([0x20], [])],
    outcome: { kind: "answered", streams: [1] },
  },
];
