import { startRawServer, type RawConnection, type RawServer } from "@headworks/testkit";

/** A request a receiver got, taken apart. */
export interface ReceivedRequest {
  readonly requestLine: string;
  /** Names and values in turn, as they came. */
  readonly fields: readonly string[];
  header(name: string): string | undefined;
  readonly body: string;
  /** When it was complete, monotonic milliseconds. */
  readonly atMs: number;
}

/** What a receiver does with one connection once the request is complete: bytes to send, or more than that. */
export type Reply = string | ((connection: RawConnection, request: ReceivedRequest) => Promise<void> | void);

/** A webhook target or decision point of a test. */
export interface Receiver extends RawServer {
  readonly requests: readonly ReceivedRequest[];
  readonly url: string;
}

/** Answers its first request with the first reply and so on; the last reply serves all further ones. */
export async function startReceiver(...replies: readonly Reply[]): Promise<Receiver> {
  const requests: ReceivedRequest[] = [];
  const server = await startRawServer(async (connection) => {
    const request = await readRequest(connection);
    const reply = replies[Math.min(requests.length, replies.length - 1)] ?? ok;
    requests.push(request);
    if (typeof reply === "string") await connection.write(reply);
    else await reply(connection, request);
  });
  return Object.assign(server, { requests, url: `http://127.0.0.1:${server.port}/hook` });
}

export const ok = "HTTP/1.1 204 No Content\r\n\r\n";

/** An answer with a status and further field lines. */
export const response = (status: number, ...lines: readonly string[]): string =>
  [`HTTP/1.1 ${status} Whatever`, "Content-Length: 0", ...lines, "", ""].join("\r\n");

export async function readRequest(connection: RawConnection): Promise<ReceivedRequest> {
  const head = (await connection.readUntil("\r\n\r\n")).toString("latin1");
  const [requestLine = "", ...lines] = head.trimEnd().split("\r\n");
  const fields = lines.flatMap((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trim()]);
  const header = (name: string): string | undefined => {
    const at = fields.findIndex((each, index) => index % 2 === 0 && each.toLowerCase() === name.toLowerCase());
    return at === -1 ? undefined : fields[at + 1];
  };
  const body = (await connection.read(Number(header("content-length") ?? "0"))).toString();
  return { requestLine, fields, header, body, atMs: performance.now() };
}
