import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { lookup } from "node:dns/promises";
import { once } from "node:events";
import { hostname } from "node:os";
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { Http2Session, type Http2Stream } from "@headworks/http2";
import { FrameReader, frameBytes } from "@headworks/websocket";
import { CertificateAuthority } from "@headworks/tls-authority";
import { answeredBody } from "./response-body.ts";

/**
 * The origin behind the proxies, a process of its own with raw sockets, to cost as little as possible. It responds to
 * `/<n>` with a JSON body of n bytes, on a plain port, one with TLS and one with HTTP/2, and reports the ports to its parent.
 * On the first two it also accepts WebSockets and echoes each message.
 *
 * Usage: spawned with an IPC channel: node origin.ts <output file for its CA certificate>
 */
export interface OriginReady {
  /** The origin's host name. */
  readonly host: string;
  readonly httpPort: number;
  readonly httpsPort: number;
  /** HTTP/2 only. */
  readonly http2Port: number;
}

const HTTP2_FIELDS = [
  ["server", "origin"],
  ["content-type", "application/json; charset=utf-8"],
  ["cache-control", "no-store"],
  ["vary", "Accept-Encoding"],
  ["x-request-id", "5e1c8c35-3f6c-4ef1-9f35-6a4f1cf0d1b7"],
].flat();
const SECTION_LIMITS = { maxFields: 100, listBytes: 65_536 };
const HEAD_END = "\r\n\r\n";
const responses = new Map<number, Buffer>();

function responseOf(sizeBytes: number): Buffer {
  const known = responses.get(sizeBytes);
  if (known) return known;
  const head = [
    "HTTP/1.1 200 OK",
    "Date: Sat, 21 Nov 2026 12:00:00 GMT",
    "Server: origin",
    "Content-Type: application/json; charset=utf-8",
    "Cache-Control: no-store",
    "Vary: Accept-Encoding",
    "X-Request-Id: 5e1c8c35-3f6c-4ef1-9f35-6a4f1cf0d1b7",
    `Content-Length: ${sizeBytes}`,
  ].join("\r\n");
  const response = Buffer.concat([Buffer.from(head + HEAD_END), answeredBody(sizeBytes)]);
  responses.set(sizeBytes, response);
  return response;
}

/** Responds to complete request heads; requests have no bodies. */
function serve(socket: Socket): void {
  let waiting = "";
  socket.setNoDelay(true);
  socket.on("error", () => undefined);
  socket.on("data", (chunk: Buffer) => {
    waiting += chunk.toString("latin1");
    for (let end = waiting.indexOf(HEAD_END); end !== -1; end = waiting.indexOf(HEAD_END)) {
      const head = waiting.slice(0, end + 2);
      waiting = waiting.slice(end + HEAD_END.length);
      const key = /\r\nsec-websocket-key: *(\S+)\r\n/i.exec(head)?.[1];
      if (key !== undefined) return echo(socket, key);
      const size = /^GET \/(\d{1,8})[? ]/.exec(head)?.[1];
      if (size === undefined) {
        socket.end("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        return;
      }
      socket.write(responseOf(Number(size)));
      if (/\r\nconnection: *close\r\n/i.test(head)) socket.end();
    }
  });
}

/** Echoes each message. */
function echo(socket: Socket, key: string): void {
  const accept = createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
  const reader = new FrameReader({ isMasked: true, allowedReserved: 0, keptBytes: 1_048_576 });
  socket.removeAllListeners("data");
  socket.on("data", (chunk: Buffer) => {
    for (let at = 0; at < chunk.length && reader.violation === undefined;) {
      at = reader.read(chunk, at);
      const { frame } = reader;
      if (frame !== undefined) socket.write(frameBytes({ opcode: frame.opcode, payload: frame.payload }));
    }
  });
  const lines = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade"];
  socket.write(`${lines.join("\r\n")}\r\nSec-WebSocket-Accept: ${accept}${HEAD_END}`);
}

function serveHttp2(socket: Socket): void {
  socket.setNoDelay(true);
  new Http2Session(
    socket,
    { role: "server", section: SECTION_LIMITS },
    { onStream: respondOnStream, onClose: () => undefined },
  );
}

function respondOnStream(stream: Http2Stream, section: readonly string[]): void {
  const size = /^\/(\d{1,8})[?]/.exec(section[section.indexOf(":path") + 1] ?? "")?.[1];
  stream.sendSection([":status", size === undefined ? "400" : "200", ...HTTP2_FIELDS], false);
  stream.write(answeredBody(Number(size ?? 0)));
  stream.end();
}

/** On all local addresses of the name, because proxies try them in different orders. */
async function listen(host: string, make: () => Server): Promise<number> {
  let port = 0;
  for (const { address } of await lookup(host, { all: true })) {
    const server = make();
    const listening = once(server, "listening");
    server.listen(port, address, 1024);
    await listening;
    ({ port } = server.address() as AddressInfo);
  }
  return port;
}

/**
 * The machine's own name if it resolves to this machine: some proxies treat "localhost" specially (mockttp tries ::1
 * first, each time), which the benchmark should not measure.
 */
async function ownName(): Promise<string> {
  try {
    const server = createServer();
    const listening = once(server, "listening");
    server.listen(0, (await lookup(hostname())).address);
    await listening;
    server.close();
    return hostname().toLowerCase();
  } catch {
    return "localhost";
  }
}

const host = await ownName();
const authority = CertificateAuthority.create({ commonName: "Benchmark origin CA", organization: "Benchmark" });
const leaf = authority.issueLeaf({ dns: [host] });
writeFileSync(process.argv[2] ?? "", authority.certificatePem);

const ready: OriginReady = {
  host,
  httpPort: await listen(host, () => createServer(serve)),
  httpsPort: await listen(host, () => createTlsServer({ key: leaf.keyPem, cert: leaf.certificatePem }, serve)),
  http2Port: await listen(host, () =>
    createTlsServer({ key: leaf.keyPem, cert: leaf.certificatePem, ALPNProtocols: ["h2"] }, serveHttp2),
  ),
};
process.send?.(ready);
process.on("disconnect", () => process.exit());
