import { startRawServer } from "@headworks/testkit";
import type { RawConnection } from "@headworks/testkit";

/** A request as it arrived, one character per byte; the body without transfer coding. */
export interface RecordedRequest {
  readonly line: string;
  readonly fields: readonly (readonly [string, string])[];
  readonly body: Buffer;
}

/** An origin that keeps what it is sent, read independently of the product's parser. */
export interface RecordingOrigin {
  readonly authority: string;
  /** What arrived since the last call. */
  take(): RecordedRequest[];
  [Symbol.asyncDispose](): Promise<void>;
}

export async function startRecordingOrigin(): Promise<RecordingOrigin> {
  const recorded: RecordedRequest[] = [];
  const server = await startRawServer(async (connection) => {
    const request = await readRequest(connection);
    recorded.push(request);
    await connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n");
    if (!request.line.startsWith("HEAD ")) await connection.write("ok");
  });
  return {
    authority: `127.0.0.1:${server.port}`,
    take: () => recorded.splice(0),
    [Symbol.asyncDispose]: async () => await server.close(),
  };
}

async function readRequest(connection: RawConnection): Promise<RecordedRequest> {
  const head = (await connection.readUntil("\r\n\r\n")).toString("latin1").slice(0, -4);
  const [line = "", ...rest] = head.split("\r\n");
  const fields = rest.map((field) => {
    const colon = field.indexOf(":");
    return [field.slice(0, colon), field.slice(colon + 1).trim()] as const;
  });
  const value = (name: string): string | undefined => fields.find(([found]) => found.toLowerCase() === name)?.[1];
  if (value("expect") !== undefined) await connection.write("HTTP/1.1 100 Continue\r\n\r\n");
  if (value("transfer-encoding") !== undefined) return { line, fields, body: await readChunks(connection) };
  return { line, fields, body: await connection.read(Number(value("content-length") ?? 0)) };
}

async function readChunks(connection: RawConnection): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for (;;) {
    const size = Number.parseInt((await connection.readUntil("\r\n")).toString("latin1"), 16);
    if (size === 0) break;
    chunks.push(await connection.read(size));
    await connection.read(2);
  }
  await connection.readUntil("\r\n");
  return Buffer.concat(chunks);
}
