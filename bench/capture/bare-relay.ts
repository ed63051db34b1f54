import { writeFileSync, readFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { connect, createSecureContext, TLSSocket, type SecureContext } from "node:tls";
import { CertificateAuthority } from "@headworks/tls-authority";
import { carry } from "./carry.ts";

/**
 * The cost of these sockets for any intercepting proxy: accepts CONNECT, terminates TLS on both sides and relays bytes
 * unread, unchecked and unstored, with the runtime's TLS defaults. It is an approximate
 * lower bound: batched writes, or other TLS settings, may cost somewhat less.
 *
 * Usage: node bare-relay.ts <directory> <origin CA file>; prints {"port", "ca"} when it listens.
 */
const [directory = ".", originCaFile = ""] = process.argv.slice(2);
const authority = CertificateAuthority.create();
const originCa = readFileSync(originCaFile, "utf8");
const originContext = createSecureContext({ ca: originCa });
const contexts = new Map<string, SecureContext>();

function contextFor(host: string): SecureContext {
  const known = contexts.get(host);
  if (known !== undefined) return known;
  const leaf = authority.issueLeaf({ dns: [host], ip: [] });
  const context = createSecureContext({ cert: leaf.chainPem, key: leaf.keyPem });
  contexts.set(host, context);
  return context;
}

const server = createServer({ noDelay: true }, (socket) => {
  socket.on("error", () => socket.destroy());
  socket.once("data", (head: Buffer) => {
    const [, host, port] = /^CONNECT ([^ :]+):(\d+) .*\r\n\r\n$/s.exec(head.toString("latin1")) ?? [];
    if (host === undefined) {
      socket.end("HTTP/1.1 501 Not Implemented\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
      return;
    }
    socket.write("HTTP/1.1 200 OK\r\n\r\n");
    const client = new TLSSocket(socket, { isServer: true, secureContext: contextFor(host) });
    const origin = connect({ host, port: Number(port), servername: host, secureContext: originContext });
    origin.setNoDelay(true);
    carry(client, origin);
    carry(origin, client);
  });
});
server.listen(0, "127.0.0.1", () => {
  const ca = join(directory, "bare-relay-ca.pem");
  writeFileSync(ca, authority.certificatePem);
  console.log(JSON.stringify({ port: (server.address() as AddressInfo).port, ca }));
});
