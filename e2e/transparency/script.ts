/** Latin-1 text or bytes. */
export type Octets = string | Buffer;

/** A client's request; the route adds the rest of the head. */
export interface ClientRequest {
  readonly method?: string;
  /** Path and query, or a whole target for other forms. */
  readonly path?: string;
  readonly version?: "HTTP/1.1" | "HTTP/1.0";
  /** Lines `Name: value`, sent after Host. */
  readonly fields?: readonly string[];
  /** Bytes after the head, including chunk framing. */
  readonly body?: Octets;
  /** Waits for 100 (Continue) before it sends the body. */
  readonly waits?: true;
  /** Size of the pieces in which it is sent. */
  readonly pieceBytes?: number;
}

/** An origin's response to a request. */
export interface OriginResponse {
  /** Heads and body as bytes. */
  readonly bytes: Octets;
  /** Sent as soon as the head was read, such as 100 (Continue). */
  readonly early?: Octets;
  /** Responds without reading the body. */
  readonly ignoresBody?: true;
  /** Closes after the response. */
  readonly closes?: true;
  readonly pieceBytes?: number;
}

/** One exchange that must look the same with and without Weir. */
export interface Step {
  readonly request: ClientRequest;
  readonly response: OriginResponse;
}

/** A named sequence of exchanges on one connection. */
export interface Case {
  readonly name: string;
  readonly steps: readonly Step[];
  /** All requests are sent before the first response is read. */
  readonly pipelined?: true;
  /** Only for the absolute form, which does not exist inside a tunnel. */
  readonly onlyPlain?: true;
}

export interface Group {
  readonly name: string;
  readonly cases: readonly Case[];
}

export const bytesOf = (octets: Octets): Buffer =>
  typeof octets === "string" ? Buffer.from(octets, "latin1") : octets;

export const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/** A case with one exchange. */
export function one(name: string, request: ClientRequest, response: OriginResponse | Octets = OK): Case {
  const whole = typeof response === "string" || Buffer.isBuffer(response) ? { bytes: response } : response;
  return { name, steps: [{ request, response: whole }] };
}

/** A head and a body with its Content-Length. */
export function sized(head: string, body: Octets): Buffer {
  const bytes = bytesOf(body);
  return Buffer.concat([bytesOf(`${head}\r\nContent-Length: ${bytes.length}\r\n\r\n`), bytes]);
}

/** A body in chunks of the repeated `sizes`. */
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

/** Bytes with a long period and all values, so that lost or doubled pieces are noticed. */
export function pattern(sizeBytes: number): Buffer {
  const bytes = Buffer.allocUnsafe(sizeBytes);
  for (let at = 0; at < sizeBytes; at += 1) bytes[at] = (at * 31 + (at >> 8) * 17 + (at >> 16)) & 255;
  return bytes;
}
