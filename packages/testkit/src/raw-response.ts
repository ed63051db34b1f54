import type { RawConnection } from "./raw-connection.ts";
import { defaultTimeoutMs } from "./timeout.ts";

/** An HTTP/1 response as bytes told it. */
export interface RawResponse {
  httpVersion: string;
  status: number;
  reason: string;
  /** Pairs as received: case, order and duplicates. */
  headers: readonly (readonly [name: string, value: string])[];
  /** The first value of a field, whatever the case of its name. */
  header(name: string): string | undefined;
  /** Without transfer coding. */
  body: Buffer;
  trailers: readonly (readonly [name: string, value: string])[];
  /** Status codes of the 1xx answers that came before. */
  interim: readonly number[];
}

/**
 * Reads one response (RFC 9112 section 6.3). Written apart from the product's parser on purpose, and strict: what a
 * careful client would not accept throws. `method` tells whether there is a body; 101 and a CONNECT's 2xx end after
 * the head.
 */
export async function readResponse(
  connection: RawConnection,
  method = "GET",
  timeoutMs = defaultTimeoutMs,
): Promise<RawResponse> {
  const interim: number[] = [];
  for (;;) {
    const head = parseHead((await connection.readUntil("\r\n\r\n", timeoutMs)).toString("latin1"));
    if (head.status >= 100 && head.status < 200 && head.status !== 101) {
      interim.push(head.status);
      continue;
    }
    const { body, trailers } = await readBody(connection, head, method, timeoutMs);
    return { ...head, header: (name) => firstValue(head.headers, name), body, trailers, interim };
  }
}

interface Head {
  httpVersion: string;
  status: number;
  reason: string;
  headers: [string, string][];
}

function parseHead(text: string): Head {
  const [statusLine = "", ...lines] = text.slice(0, -4).split("\r\n");
  const match = /^HTTP\/(1\.[01]) ([0-9]{3}) ([^\r\n]*)$/.exec(statusLine);
  if (match === null) throw new Error(`not a status line: ${JSON.stringify(statusLine)}`);
  const [, httpVersion = "", status = "", reason = ""] = match;
  return { httpVersion, status: Number(status), reason, headers: lines.map(parseField) };
}

function parseField(line: string): [string, string] {
  const match = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\r\n\0]*?)[ \t]*$/.exec(line);
  if (match === null) throw new Error(`not a header field: ${JSON.stringify(line)}`);
  return [match[1] ?? "", match[2] ?? ""];
}

const valuesOf = (headers: readonly (readonly [string, string])[], name: string): string[] =>
  headers.filter(([each]) => each.toLowerCase() === name.toLowerCase()).map(([, value]) => value);

const firstValue = (headers: readonly (readonly [string, string])[], name: string): string | undefined =>
  valuesOf(headers, name)[0];

async function readBody(
  connection: RawConnection,
  head: Head,
  method: string,
  timeoutMs: number,
): Promise<{ body: Buffer; trailers: [string, string][] }> {
  const none = { body: Buffer.alloc(0), trailers: [] };
  const { status, headers } = head;
  if (method === "HEAD" || status === 101 || status === 204 || status === 304) return none;
  if (method === "CONNECT" && status >= 200 && status < 300) return none;
  const codings = valuesOf(headers, "transfer-encoding");
  const lengths = valuesOf(headers, "content-length");
  if (codings.length > 0) {
    if (lengths.length > 0) throw new Error("both Transfer-Encoding and Content-Length");
    if (codings.join(", ").toLowerCase() === "chunked") return await readChunks(connection, timeoutMs);
    throw new Error(`unexpected Transfer-Encoding: ${codings.join(", ")}`);
  }
  if (lengths.length > 1) throw new Error("more than one Content-Length");
  const length = lengths[0];
  if (length === undefined) return { body: await connection.collect(timeoutMs), trailers: [] };
  if (!/^[0-9]+$/.test(length)) throw new Error(`not a Content-Length: ${length}`);
  return { body: await connection.read(Number(length), timeoutMs), trailers: [] };
}

async function readChunks(
  connection: RawConnection,
  timeoutMs: number,
): Promise<{ body: Buffer; trailers: [string, string][] }> {
  const chunks: Buffer[] = [];
  for (;;) {
    const line = (await connection.readUntil("\r\n", timeoutMs)).toString("latin1");
    const size = /^([0-9a-fA-F]+)(?:[ \t]*;[^\r\n]*)?\r\n$/.exec(line)?.[1];
    if (size === undefined) throw new Error(`not a chunk size: ${JSON.stringify(line)}`);
    const lengthBytes = Number.parseInt(size, 16);
    if (lengthBytes === 0) break;
    chunks.push(await connection.read(lengthBytes, timeoutMs));
    const end = await connection.read(2, timeoutMs);
    if (end.toString("latin1") !== "\r\n") throw new Error("a chunk is not followed by CRLF");
  }
  const trailers: [string, string][] = [];
  for (;;) {
    const line = (await connection.readUntil("\r\n", timeoutMs)).toString("latin1").slice(0, -2);
    if (line === "") return { body: Buffer.concat(chunks), trailers };
    trailers.push(parseField(line));
  }
}
