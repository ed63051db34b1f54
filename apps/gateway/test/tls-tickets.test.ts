import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { test } from "node:test";
import { connect, type TLSSocket } from "node:tls";
import { pino } from "pino";
import { temporaryDirectory, type TemporaryDirectory } from "@headworks/testkit";
import { CertificateAuthority } from "@headworks/tls-authority";
import type { ListenerTls } from "@headworks/gateway-contract";
import { SessionTickets, TlsAcceptor } from "#listener/tls-acceptor.ts";
import { startWorkers } from "./workers-rig.ts";

const authority = CertificateAuthority.create();

async function issue(directory: TemporaryDirectory, name: string): Promise<{ cert_file: string; key_file: string }> {
  const leaf = authority.issueLeaf({ dns: [name], ip: [] });
  const files = { cert_file: directory.file(`${name}.pem`), key_file: directory.file(`${name}.key`) };
  await writeFile(files.cert_file, leaf.chainPem);
  await writeFile(files.key_file, leaf.keyPem);
  return files;
}

const VERSIONS = ["TLSv1.2", "TLSv1.3"] as const;

/** Asks for the health and says whether the session was resumed, and what session to come back with. */
async function visit(
  port: number,
  version: (typeof VERSIONS)[number],
  session?: Buffer,
  servername = "a.test",
): Promise<{ isReused: boolean; session: Buffer }> {
  const limits = { minVersion: version, maxVersion: version, ca: authority.certificatePem };
  const socket = connect({ host: "127.0.0.1", port, servername, ...limits, ...(session ? { session } : {}) });
  const ticket = Promise.withResolvers<Buffer>();
  socket.on("session", ticket.resolve);
  await once(socket, "secureConnect");
  const isReused = socket.isSessionReused();
  socket.end("GET /healthz HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
  socket.resume();
  await once(socket, "end");
  return { isReused, session: isReused && session !== undefined ? session : await ticket.promise };
}

interface Accepting extends AsyncDisposable {
  readonly port: number;
  readonly acceptor: TlsAcceptor;
}

/** What accepts TLS in one process of a gateway. */
async function accepting(tls: ListenerTls, tickets: SessionTickets, listener = "public"): Promise<Accepting> {
  const log = pino({ enabled: false });
  const watch = (): { close(): Promise<void> } => ({ close: async () => await Promise.resolve() });
  const parts = { listener, tls, offersHttp2: false, handshakeMs: 5000, log, watch, tickets };
  const acceptor = await TlsAcceptor.create(parts);
  const server = createServer({ pauseOnConnect: true }, (socket) => {
    acceptor.accept(socket, (secured: TLSSocket) => {
      secured.on("error", () => undefined);
      secured.end("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
      secured.resume();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    acceptor,
    [Symbol.asyncDispose]: async () => {
      await acceptor.close();
      await new Promise((closed) => server.close(closed));
    },
  };
}

for (const version of VERSIONS) {
  test(`${version}: a session is resumed by another process of the same secret, and not by one of another`, async () => {
    await using directory = await temporaryDirectory();
    const tls = await issue(directory, "a.test");
    const tickets = new SessionTickets();
    await using first = await accepting(tls, tickets);
    await using second = await accepting(tls, new SessionTickets(tickets.secret));
    await using stranger = await accepting(tls, new SessionTickets());
    await using other = await accepting(tls, tickets, "another listener");
    const { isReused, session } = await visit(first.port, version);
    assert.equal(isReused, false);
    assert.equal((await visit(first.port, version, session)).isReused, true);
    assert.equal((await visit(second.port, version, session)).isReused, true);
    assert.equal((await visit(stranger.port, version, session)).isReused, false);
    assert.equal((await visit(other.port, version, session)).isReused, false);
  });

  test(`${version}: a renewed certificate leaves sessions as they are, a new secret ends them`, async () => {
    await using directory = await temporaryDirectory();
    const tls = { ...(await issue(directory, "a.test")), certificates: [] };
    const named = { ...tls, certificates: [{ server_names: ["b.test"], ...(await issue(directory, "b.test")) }] };
    const tickets = new SessionTickets();
    await using server = await accepting(named, tickets);
    const { session } = await visit(server.port, version, undefined, "b.test");
    await issue(directory, "a.test");
    await issue(directory, "b.test");
    await server.acceptor.reload();
    assert.equal((await visit(server.port, version, session, "b.test")).isReused, true);
    tickets.rotate();
    const after = await visit(server.port, version, session, "b.test");
    assert.equal(after.isReused, false);
    assert.equal((await visit(server.port, version, after.session, "b.test")).isReused, true);
  });

  test(`${version}: no session outlives the trust in the authority of clients`, async () => {
    await using directory = await temporaryDirectory();
    const client_ca_file = directory.file("clients.pem");
    await writeFile(client_ca_file, CertificateAuthority.create().certificatePem);
    const tls = { ...(await issue(directory, "a.test")), client_ca_file };
    await using server = await accepting(tls, new SessionTickets());
    const { session } = await visit(server.port, version);
    assert.equal((await visit(server.port, version, session)).isReused, true);
    await writeFile(client_ca_file, CertificateAuthority.create().certificatePem);
    await server.acceptor.reload();
    assert.equal((await visit(server.port, version, session)).isReused, false);
  });
}

test("a session that one worker began is resumed by the other", async () => {
  await using directory = await temporaryDirectory();
  const tls = await issue(directory, "a.test");
  await using gateway = await startWorkers({
    listeners: [{ name: "public", address: "127.0.0.1", port: 0, protocol: "https", tls }],
    routes: [],
  });
  const gone = new Set<number>();
  /** While the others stand still, only this worker takes connections. */
  const onlyBy = async <T>(pid: number, visiting: () => Promise<T>): Promise<T> => {
    const others = gateway.workerPids().filter((one) => one !== pid && !gone.has(one));
    for (const other of others) process.kill(other, "SIGSTOP");
    try {
      return await visiting();
    } finally {
      for (const other of others) process.kill(other, "SIGCONT");
    }
  };
  const [first = 0, second = 0] = gateway.workerPids();
  for (const version of VERSIONS) {
    const { session } = await onlyBy(first, async () => await visit(gateway.port, version));
    assert.equal((await onlyBy(second, async () => await visit(gateway.port, version, session))).isReused, true);
  }
  // A worker that takes the place of another knows the secret too.
  const { session } = await onlyBy(second, async () => await visit(gateway.port, "TLSv1.3"));
  process.kill(first, "SIGKILL");
  gone.add(first);
  await gateway.child.waitForOutput(/(?:"code":"worker_started"[^]*){3}/);
  const third = gateway.workerPids().at(-1) ?? 0;
  assert.notEqual(third, first);
  await onlyBy(third, async () => {
    assert.equal((await visit(gateway.port, "TLSv1.3", session)).isReused, true);
  });
});
