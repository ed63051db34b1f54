import type { RawConnection } from "@headworks/testkit";

/** Name and value pairs as received. */
export type Pairs = readonly (readonly [name: string, value: string])[];

/** A message head parsed without leniency. */
export interface Head {
  readonly start: string;
  readonly fields: Pairs;
}

/** The framing of a body. */
export type Framing = "none" | "length" | "chunked" | "until-close";

/** A response as a client receives it. */
export interface SeenResponse {
  readonly interim: readonly Head[];
  readonly status: number;
  readonly reason: string;
  readonly fields: Pairs;
  readonly framing: Framing;
  readonly body: Buffer;
  readonly trailers: Pairs;
}

/** A request as an origin receives it. */
export interface SeenRequest {
  readonly line: string;
  readonly fields: Pairs;
  readonly framing: Framing;
  readonly body: Buffer;
  readonly trailers: Pairs;
}

const TIMEOUT_MS = 20_000;

/** Reads a head up to its empty line, as latin1 to keep all bytes. */
export async function readHead(connection: RawConnection): Promise<Head> {
  const [start = "", ...lines] = (await connection.readUntil("\r\n\r\n", TIMEOUT_MS))
    .toString("latin1")
    .slice(0, -4)
    .split("\r\n");
  return { start, fields: lines.map(parseField) };
}

function parseField(line: string): [string, string] {
  const colon = line.indexOf(":");
  if (colon < 1) throw new Error(`not a field line: ${JSON.stringify(line)}`);
  return [line.slice(0, colon), line.slice(colon + 1).replace(/^[ \t]+|[ \t]+$/g, "")];
}

export function valueOf(fields: Pairs, lowerName: string): string | undefined {
  return fields.find(([name]) => name.toLowerCase() === lowerName)?.[1];
}

/** Reads one response; `onContinue` is called for each 100. */
export async function readResponse(
  connection: RawConnection,
  method: string,
  onContinue?: () => Promise<void>,
): Promise<SeenResponse> {
  const interim: Head[] = [];
  for (;;) {
    const head = await readHead(connection);
    const match = /^HTTP\/1\.[01] (\d{3}) (.*)$/s.exec(head.start);
    if (!match) throw new Error(`not a status line: ${JSON.stringify(head.start)}`);
    const status = Number(match[1]);
    if (status === 100) await onContinue?.();
    if (status < 200 && status !== 101) {
      interim.push({ ...head, start: head.start.slice("HTTP/1.1 ".length) });
      continue;
    }
    const framing = responseFraming(method, status, head.fields);
    const { body, trailers } = await readBody(connection, framing, head.fields);
    return { interim, status, reason: match[2] ?? "", fields: head.fields, framing, body, trailers };
  }
}

function responseFraming(method: string, status: number, fields: Pairs): Framing {
  if (method === "HEAD" || status === 101 || status === 204 || status === 304) return "none";
  if (valueOf(fields, "transfer-encoding") !== undefined) return "chunked";
  return valueOf(fields, "content-length") === undefined ? "until-close" : "length";
}

/** Reads the rest of a request after its head. */
export async function readRequestBody(connection: RawConnection, head: Head): Promise<SeenRequest> {
  const { fields } = head;
  const isChunked = valueOf(fields, "transfer-encoding") !== undefined;
  const framing = isChunked ? "chunked" : valueOf(fields, "content-length") === undefined ? "none" : "length";
  return { line: head.start, fields, framing, ...(await readBody(connection, framing, fields)) };
}

async function readBody(
  connection: RawConnection,
  framing: Framing,
  fields: Pairs,
): Promise<{ body: Buffer; trailers: Pairs }> {
  switch (framing) {
    case "none":
      return { body: Buffer.alloc(0), trailers: [] };
    case "length":
      return { body: await connection.read(Number(valueOf(fields, "content-length")), TIMEOUT_MS), trailers: [] };
    case "until-close":
      return { body: await connection.collect(TIMEOUT_MS), trailers: [] };
    case "chunked":
      return await readChunks(connection);
  }
}

async function readChunks(connection: RawConnection): Promise<{ body: Buffer; trailers: Pairs }> {
  const pieces: Buffer[] = [];
  for (;;) {
    const line = (await connection.readUntil("\r\n", TIMEOUT_MS)).toString("latin1");
    const size = /^([0-9A-Fa-f]+)(?:;[^\r\n]*)?\r\n$/.exec(line)?.[1];
    if (size === undefined) throw new Error(`not a chunk size: ${JSON.stringify(line)}`);
    if (Number.parseInt(size, 16) === 0) break;
    pieces.push(await connection.read(Number.parseInt(size, 16), TIMEOUT_MS));
    const end = (await connection.read(2, TIMEOUT_MS)).toString("latin1");
    if (end !== "\r\n") throw new Error(`a chunk ends with ${JSON.stringify(end)}`);
  }
  const trailers: [string, string][] = [];
  for (;;) {
    const line = (await connection.readUntil("\r\n", TIMEOUT_MS)).toString("latin1").slice(0, -2);
    if (line === "") return { body: Buffer.concat(pieces), trailers };
    trailers.push(parseField(line));
  }
}

/** Framing is compared separately: Transfer-Encoding belongs to one hop (RFC 9112, 6.1). */
const HOP_BY_HOP = /^(?:connection|keep-alive|proxy-.*|upgrade|transfer-encoding)$/i;
/** Connection cannot remove these fields: a client could remove fields that both ends rely on. */
const PROTECTED = /^(?:authorization|content-length|cookie|forwarded|host|set-cookie|x-forwarded-.*)$/i;

/** Fields without those of one connection (RFC 9110, 7.6.1). */
export function endToEnd(fields: Pairs): Pairs {
  const named = fields
    .filter(([name]) => name.toLowerCase() === "connection")
    .flatMap(([, value]) =>
      value
        .toLowerCase()
        .split(",")
        .map((option) => option.trim()),
    );
  const isNamed = (name: string): boolean => named.includes(name.toLowerCase()) && !PROTECTED.test(name);
  return fields.filter(([name]) => !HOP_BY_HOP.test(name) && !isNamed(name));
}
