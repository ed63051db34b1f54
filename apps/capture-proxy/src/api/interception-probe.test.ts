import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { test } from "node:test";
import { createSecureContext, TLSSocket } from "node:tls";
import { CertificateAuthority } from "@headworks/tls-authority";
import { probeInterception } from "./interception-probe.ts";
import type { ProbeStep } from "./interception-probe.ts";

const ca = CertificateAuthority.create();

/** A proxy with the given response to CONNECT and, inside, HTTPS with a leaf of `issuer`. */
async function startProxy(options: {
  connectStatus?: number;
  issuer?: CertificateAuthority;
  names?: string[];
  response?: string;
}): Promise<{ address: string; server: Server; sockets: Set<Socket> }> {
  const leaf = (options.issuer ?? ca).issueLeaf({ dns: options.names ?? ["weir"] });
  const secureContext = createSecureContext({ cert: leaf.chainPem, key: leaf.keyPem });
  const sockets = new Set<Socket>();
  const server = createServer((_request, response) => response.end("plain"));
  server.on("connection", (socket) => sockets.add(socket));
  server.on("connect", (_request, socket: Socket) => {
    socket.on("error", () => undefined);
    if (options.connectStatus !== undefined) {
      return socket.end(`HTTP/1.1 ${options.connectStatus} No\r\nContent-Length: 0\r\n\r\n`);
    }
    socket.write("HTTP/1.1 200 OK\r\n\r\n");
    const secure = new TLSSocket(socket, { isServer: true, secureContext });
    secure.on("error", () => undefined);
    secure.once("data", () => {
      if (options.response !== undefined) secure.end(options.response);
    });
    return undefined;
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server, sockets };
}

async function probe(
  options: Parameters<typeof startProxy>[0],
  signal: AbortSignal = new AbortController().signal,
): Promise<ProbeStep[]> {
  const { address, server, sockets } = await startProxy(options);
  try {
    return await probeInterception({
      proxyAddress: address,
      url: "https://weir/check",
      caPem: ca.certificatePem,
      signal,
    });
  } finally {
    for (const socket of sockets) socket.destroy();
    server.close();
  }
}

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const shape = (steps: readonly ProbeStep[]): string => steps.map(({ ok }) => (ok ? "+" : "-")).join("");

test("a working interception passes every step", async () => {
  const steps = await probe({ response: OK });
  assert.equal(shape(steps), "++++", JSON.stringify(steps));
  assert.match(steps[2]?.detail ?? "", /^TLSv1\.[23], issued by Weir CA/);
});

test("the first failed step has the reason and is the last", async () => {
  const table: readonly (readonly [Parameters<typeof startProxy>[0], string, RegExp])[] = [
    [{ connectStatus: 403 }, "+-", /CONNECT with status 403/],
    [{ issuer: CertificateAuthority.create(), response: OK }, "++-", /certificate/i],
    [{ names: ["other"], response: OK }, "++-", /altnames/i],
    [{ response: "HTTP/1.1 502 Bad\r\nContent-Length: 0\r\n\r\n" }, "+++-", /status 502/],
    [{ response: "nonsense" }, "+++-", /Parse Error/],
  ];
  for (const [options, expected, detail] of table) {
    const steps = await probe(options);
    assert.equal(shape(steps), expected, JSON.stringify(steps));
    assert.match(steps.at(-1)?.detail ?? "", detail);
  }
});

test("an unreachable address fails the first step", async () => {
  const { address, server } = await startProxy({});
  server.close();
  await once(server, "close");
  const steps = await probeInterception({
    proxyAddress: address,
    url: "https://weir/check",
    caPem: ca.certificatePem,
    signal: new AbortController().signal,
  });
  assert.equal(shape(steps), "-");
  assert.match(steps[0]?.detail ?? "", /ECONNREFUSED/);
});

test("a caller that goes away ends the test", async () => {
  const controller = new AbortController();
  const running = probe({}, controller.signal);
  controller.abort();
  assert.equal(shape(await running).at(-1), "-");
});
