import { startRawServer, type RawConnection, type RawServer } from "@headworks/testkit";

/** One request as its bytes told it, read without the product's parser. */
export interface RecordedRequest {
  readonly line: string;
  readonly fields: readonly (readonly [name: string, value: string])[];
  /** All values of a field, whatever the case of its name. */
  values(name: string): string[];
  /** As it came, chunk sizes and trailers included. */
  readonly rawBody: string;
}

/** An upstream that keeps every request that it gets, and answers each with its request line. */
export interface RecordingUpstream extends RawServer {
  /** Those that were whole. */
  readonly requests: readonly RecordedRequest[];
  /** Request lines of those that broke off in their body. */
  readonly broken: readonly string[];
}

/** Starts one; what cannot be read as requests, one behind the other, makes closing it fail. */
export async function startRecordingUpstream(): Promise<RecordingUpstream> {
  const requests: RecordedRequest[] = [];
  const broken: string[] = [];
  const server = await startRawServer(async (connection) => {
    for (;;) {
      const request = await readOne(connection, broken);
      if (request === undefined) return;
      requests.push(request);
      await connection.write(`HTTP/1.1 200 OK\r\nContent-Length: ${request.line.length}\r\n\r\n${request.line}`);
    }
  });
  return Object.assign(server, { requests, broken });
}

async function readOne(connection: RawConnection, broken: string[]): Promise<RecordedRequest | undefined> {
  const head = await connection.readUntil("\r\n\r\n", 20_000).catch((error: unknown) => {
    if (connection.ended && connection.unreadBytes === 0) return undefined;
    throw error;
  });
  if (head === undefined) return undefined;
  const [line = "", ...lines] = head.toString("latin1").slice(0, -4).split("\r\n");
  const fields = lines.map((text) => {
    const at = text.indexOf(":");
    return [text.slice(0, at), text.slice(at + 1).trim()] as const;
  });
  const values = (name: string): string[] =>
    fields.filter(([each]) => each.toLowerCase() === name).map(([, value]) => value);
  try {
    const rawBody =
      values("transfer-encoding").length > 0
        ? await readChunks(connection)
        : (await connection.read(Number(values("content-length")[0] ?? "0"))).toString("latin1");
    return { line, fields, values, rawBody };
  } catch (error) {
    if (!connection.ended) throw error;
    broken.push(line);
    return undefined;
  }
}

async function readChunks(connection: RawConnection): Promise<string> {
  let raw = "";
  for (;;) {
    const line = (await connection.readUntil("\r\n")).toString("latin1");
    raw += line;
    const sizeBytes = Number.parseInt(line, 16);
    if (!/^[0-9a-f]+\r\n$/i.test(line)) throw new Error(`not a plain chunk size: ${JSON.stringify(line)}`);
    if (sizeBytes === 0) break;
    raw += (await connection.read(sizeBytes + 2)).toString("latin1");
  }
  for (;;) {
    const line = (await connection.readUntil("\r\n")).toString("latin1");
    raw += line;
    if (line === "\r\n") return raw;
  }
}
