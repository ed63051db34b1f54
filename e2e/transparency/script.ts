/** Latin-1 text or bytes. */
export type Octets = string | Buffer;

/** What a client sends: the rest of the head is made by the way it takes. */
export interface Ask {
  readonly method?: string;
  /** Path and query, or a whole target for the forms that have none. */
  readonly path?: string;
  readonly version?: "HTTP/1.1" | "HTTP/1.0";
  /** Lines `Name: value`, sent behind Host. */
  readonly fields?: readonly string[];
  /** Bytes behind the head, chunk framing included. */
  readonly body?: Octets;
  /** Waits for 100 (Continue) before it sends the body. */
  readonly waits?: true;
  /** Sends in pieces of this size. */
  readonly pieceBytes?: number;
}

/** What an origin sends when it has read a request. */
export interface Tell {
  /** Heads and body as bytes. */
  readonly bytes: Octets;
  /** Sent as soon as the head was read, such as 100 (Continue). */
  readonly early?: Octets;
  /** Answers without reading the body. */
  readonly ignoresBody?: true;
  /** Closes behind the answer. */
  readonly closes?: true;
  readonly pieceBytes?: number;
}

/** One exchange that must look the same with and without Weir. */
export interface Step {
  readonly ask: Ask;
  readonly tell: Tell;
}

/** A named sequence of exchanges on one connection. */
export interface Case {
  readonly name: string;
  readonly steps: readonly Step[];
  /** All requests leave before the first answer is read. */
  readonly pipelined?: true;
  /** Only makes sense in absolute form; inside a tunnel there is no such target. */
  readonly onlyPlain?: true;
}

export interface Group {
  readonly name: string;
  readonly cases: readonly Case[];
}

export const bytesOf = (octets: Octets): Buffer =>
  typeof octets === "string" ? Buffer.from(octets, "latin1") : octets;

export const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/** A case of one exchange. */
export function one(name: string, ask: Ask, tell: Tell | Octets = OK): Case {
  const whole = typeof tell === "string" || Buffer.isBuffer(tell) ? { bytes: tell } : tell;
  return { name, steps: [{ ask, tell: whole }] };
}

/** A head and a body that it announces with Content-Length. */
export function sized(head: string, body: Octets): Buffer {
  const bytes = bytesOf(body);
  return Buffer.concat([bytesOf(`${head}\r\nContent-Length: ${bytes.length}\r\n\r\n`), bytes]);
}

/** The chunked form of a body; `sizes` are used in turn. */
export function chunked(body: Octets, sizes: readonly number[] = [4096], trailers = ""): Buffer {
  const bytes = bytesOf(body);
  const pieces: Buffer[] = [];
  for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
    const piece = bytes.subarray(at, at + (sizes[turn % sizes.length] ?? 1));
    pieces.push(bytesOf(`${piece.length.toString(16)}\r\n`), piece, bytesOf("\r\n"));
    at += piece.length;
  }
  return Buffer.concat([...pieces, bytesOf(`0\r\n${trailers}\r\n`)]);
}

/** A head and a chunked body. */
export function streamed(head: string, body: Octets, sizes?: readonly number[], trailers?: string): Buffer {
  return Buffer.concat([bytesOf(`${head}\r\nTransfer-Encoding: chunked\r\n\r\n`), chunked(body, sizes, trailers)]);
}

/** Bytes that repeat late and contain every value, so that a lost or doubled piece shows. */
export function pattern(sizeBytes: number): Buffer {
  const bytes = Buffer.allocUnsafe(sizeBytes);
  for (let at = 0; at < sizeBytes; at += 1) bytes[at] = (at * 31 + (at >> 8) * 17 + (at >> 16)) & 255;
  return bytes;
}
