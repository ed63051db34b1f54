import { writeFileSync } from "node:fs";
import { lookup } from "node:dns/promises";
import { once } from "node:events";
import { hostname } from "node:os";
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { CertificateAuthority } from "@headworks/tls-authority";
import { answeredBody } from "./answered-body.ts";

/**
 * The origin behind the proxies, a process of its own: raw sockets, so that it costs as little as possible. It answers
 * `/<n>` with a JSON body of n bytes, on one plain and one TLS port, and tells both ports to its parent.
 *
 * Usage: spawned with an IPC channel: node origin.ts <file to write its CA certificate to>
 */
export interface OriginReady {
  /** The name by which it is asked for. */
  readonly host: string;
  readonly httpPort: number;
  readonly httpsPort: number;
}

const HEAD_END = "\r\n\r\n";
const answers = new Map<number, Buffer>();

function answerOf(sizeBytes: number): Buffer {
  const known = answers.get(sizeBytes);
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
  const answer = Buffer.concat([Buffer.from(head + HEAD_END), answeredBody(sizeBytes)]);
  answers.set(sizeBytes, answer);
  return answer;
}

/** Answers whole request heads; nothing here sends bodies. */
function serve(socket: Socket): void {
  let waiting = "";
  socket.setNoDelay(true);
  socket.on("error", () => undefined);
  socket.on("data", (chunk: Buffer) => {
    waiting += chunk.toString("latin1");
    for (let end = waiting.indexOf(HEAD_END); end !== -1; end = waiting.indexOf(HEAD_END)) {
      const head = waiting.slice(0, end + 2);
      waiting = waiting.slice(end + HEAD_END.length);
      const size = /^GET \/(\d{1,8})[? ]/.exec(head)?.[1];
      if (size === undefined) {
        socket.end("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        return;
      }
      socket.write(answerOf(Number(size)));
      if (/\r\nconnection: *close\r\n/i.test(head)) socket.end();
    }
  });
}

/** On every address that the name has here, since proxies differ in which they try first. */
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
 * The machine's own name if it leads to this machine: some proxies treat "localhost" specially (mockttp tries ::1
 * first, each time), which is no part of what is compared.
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
};
process.send?.(ready);
process.on("disconnect", () => process.exit());
