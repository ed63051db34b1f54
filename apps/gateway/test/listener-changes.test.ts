import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type AddressInfo, type Server } from "node:net";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { peer, rawClient, readResponse, runProcess, startOrigin, waitUntil } from "@headworks/testkit";
import type { DocumentInput } from "@headworks/gateway-contract";
import { RejectedDocumentError } from "#gateway.ts";
import { serving, startGateway, type TestGateway } from "./gateway-rig.ts";
import { get, startWorkers } from "./workers-rig.ts";

type ListenerInput = NonNullable<DocumentInput["listeners"]>[number];

const publicListener = (more: Partial<ListenerInput> = {}): ListenerInput => ({
  name: "public",
  address: "127.0.0.1",
  port: 0,
  ...more,
});
const listening = (...listeners: ListenerInput[]): DocumentInput => ({ listeners, routes: [] });

const HEALTH = "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n";

/** Another process's server, as far as the gateway can tell. */
async function startOther(
  port = 0,
  address = "127.0.0.1",
): Promise<{ port: number; close(): Promise<void> } & AsyncDisposable> {
  const server: Server = createServer();
  server.listen(port, address);
  await once(server, "listening");
  const closed = once(server, "close");
  const close = async (): Promise<void> => {
    server.close();
    await closed;
  };
  return { port: (server.address() as AddressInfo).port, close, [Symbol.asyncDispose]: close };
}

async function freePort(): Promise<number> {
  await using other = await startOther();
  return other.port;
}

const isOpen = async (port: number): Promise<boolean> => {
  const client = await rawClient(port).catch(() => undefined);
  client?.destroy();
  return client !== undefined;
};

const isHealthy = async (gateway: TestGateway, listener = "public"): Promise<boolean> =>
  (await gateway.send({ path: "/healthz", listener })).status === 200;

test("a document whose listener wants an address that the machine lacks is rejected, and the old one goes on", async () => {
  await using gateway = await startGateway(listening(publicListener()));
  const port = gateway.port();
  await using open = await rawClient(port);
  const outcome = await gateway.reload(listening(publicListener({ address: "192.0.2.1", port })));
  const message = `The listener "public" cannot listen on 192.0.2.1 port ${port}: this machine has no such address (EADDRNOTAVAIL)`;
  assert.ok(outcome.outcome === "rejected");
  assert.deepEqual(
    outcome.issues.filter(({ severity }) => severity === "error"),
    [{ code: "compile_failed", path: "/listeners/0", line: 1, column: 15, message, severity: "error" }],
  );
  assert.equal(gateway.gateway.generations.current?.number, 1);
  assert.ok(gateway.log.some(({ code }) => code === "config_rejected"));
  await open.write(HEALTH);
  assert.equal((await readResponse(open)).status, 200);
  assert.ok(await isHealthy(gateway));
  assert.equal(gateway.port(), port);
});

test("a document whose listener wants a port that another process has is rejected until that is free", async () => {
  await using gateway = await startGateway(listening(publicListener()));
  const before = gateway.port();
  const free = await freePort();
  await using other = await startOther();
  const next = listening(publicListener({ port: free }), publicListener({ name: "more", port: other.port }));
  for (let time = 0; time < 2; time += 1) {
    const outcome = await gateway.reload(next);
    assert.ok(outcome.outcome === "rejected");
    const [issue] = outcome.issues.filter(({ severity }) => severity === "error");
    assert.equal(issue?.path, "/listeners/1");
    assert.match(
      issue.message,
      /"more" cannot listen on 127\.0\.0\.1 port \d+: the port is in use there \(EADDRINUSE\)/,
    );
    assert.equal(gateway.port(), before);
    assert.ok(await isHealthy(gateway));
    await assert.rejects(rawClient(free), "what was opened for it is closed again");
  }
  const told = gateway.log
    .map(({ code }) => code)
    .filter((code) => /^config_(?:published|rejected)$/.test(String(code)));
  assert.deepEqual(told, ["config_published", "config_rejected", "config_rejected"]);
  await other.close();
  assert.equal((await gateway.reload(next)).outcome, "published");
  assert.deepEqual([gateway.port(), gateway.port("more")], [free, other.port]);
  assert.ok((await isHealthy(gateway)) && (await isHealthy(gateway, "more")));
  await assert.rejects(rawClient(before), "nothing listens there any more");
});

test("a first document whose admin API wants a port that is taken is rejected before it is published", async () => {
  await using other = await startOther();
  const document = { ...listening(publicListener()), admin: { bind: `127.0.0.1:${other.port}` } };
  const error: unknown = await startGateway(document, { environment: { GATEWAY_ADMIN_DEV: "1" } }).catch(
    (caught: unknown) => caught,
  );
  assert.ok(error instanceof RejectedDocumentError);
  const [issue] = error.issues.filter(({ severity }) => severity === "error");
  assert.deepEqual([error.message, issue?.path], ["The configuration cannot run here", "/admin"]);
  assert.match(issue?.message ?? "", /^The admin API cannot listen on 127\.0\.0\.1:\d+: the port is in use there/);
});

test("after a rejected listener a good change is published, on the same connections", async () => {
  await using gateway = await startGateway(listening(publicListener()));
  await using open = await rawClient(gateway.port());
  await gateway.reload(listening(publicListener({ address: "192.0.2.1" })));
  assert.equal((await gateway.reload(listening(publicListener({ idle_timeout_ms: 5000 })))).outcome, "published");
  await open.write(HEALTH);
  assert.equal((await readResponse(open)).status, 200);
});

test("a document that could not be written closes what was opened for it", async () => {
  await using gateway = await startGateway(listening(publicListener()));
  const port = await freePort();
  const text = JSON.stringify(listening(publicListener({ port })));
  const persist = async (): Promise<void> => {
    await using early = await rawClient(port);
    await early.write(HEALTH);
    throw new Error("read-only");
  };
  const outcome = await gateway.gateway.generations.submit({ text, source: "admin" }, { persist });
  assert.equal(outcome.outcome, "not_persisted");
  await waitUntil(async () => !(await isOpen(port)));
  assert.ok(await isHealthy(gateway));
});

test("clients of a new listener wait for the generation that it belongs to", async () => {
  await using gateway = await startGateway(listening(publicListener()));
  const port = await freePort();
  const text = JSON.stringify(listening(publicListener(), publicListener({ name: "new", port, metrics: true })));
  const clients: Awaited<ReturnType<typeof rawClient>>[] = [];
  const persist = async (): Promise<void> => {
    const client = await rawClient(port);
    clients.push(client);
    await client.write("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
    await sleep(200);
    assert.equal(client.unreadBytes, 0);
  };
  const { outcome } = await gateway.gateway.generations.submit({ text, source: "admin" }, { persist });
  assert.equal(outcome, "published");
  const [client] = clients;
  assert.ok(client !== undefined);
  await using waited = client;
  const response = await readResponse(waited);
  assert.match(response.body.toString(), /^config_generation 2$/m);
});

test("a listener that moves finishes what it has where it was", async () => {
  const began = Promise.withResolvers<() => void>();
  await using origin = await startOrigin({
    handler: (_request, response) => began.resolve(() => void response.end("late")),
  });
  const on = (port: number): DocumentInput => ({
    listeners: [publicListener({ port })],
    ...serving("api", [origin.port]),
    routes: [
      { name: "all", service: "api", match: { path: { type: "prefix", value: "/" } }, action: { type: "proxy" } },
    ],
  });
  await using gateway = await startGateway(on(0));
  const before = gateway.port();
  await using busy = await rawClient(before);
  await busy.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  const response = await began.promise;
  const port = await freePort();
  assert.equal((await gateway.reload(on(port))).outcome, "published");
  assert.equal(gateway.port(), port);
  await assert.rejects(rawClient(before));
  response();
  assert.equal((await readResponse(busy)).body.toString(), "late");
});

test("two listeners may swap their names: both addresses stay open with their connections", async () => {
  const [a, b] = [await freePort(), await freePort()];
  const named = (first: string, second: string): DocumentInput =>
    listening(publicListener({ name: first, port: a }), publicListener({ name: second, port: b }));
  await using gateway = await startGateway(named("one", "two"));
  await using open = await rawClient(a);
  assert.equal((await gateway.reload(named("two", "one"))).outcome, "published");
  assert.deepEqual([gateway.port("one"), gateway.port("two")], [b, a]);
  await open.write(HEALTH);
  assert.equal((await readResponse(open)).status, 200);
});

test("one address of a port may become all addresses, and the other way round", async () => {
  const port = await freePort();
  await using gateway = await startGateway(listening(publicListener({ port })));
  for (const address of ["0.0.0.0", "127.0.0.1"]) {
    assert.equal((await gateway.reload(listening(publicListener({ address, port })))).outcome, "published");
    assert.deepEqual(gateway.gateway.addresses, [{ name: "public", address, port }]);
    assert.ok(await isHealthy(gateway));
  }
});

test("one address of a port stays when all addresses cannot be had, because another process has one of them", async () => {
  const port = await freePort();
  await using gateway = await startGateway(listening(publicListener({ port })));
  await using other = await startOther(port, "127.0.0.2");
  await using open = await rawClient(port);
  for (const address of ["0.0.0.0", "127.0.0.2"]) {
    const outcome = await gateway.reload(listening(publicListener({ address, port })));
    assert.equal(outcome.outcome, "rejected");
    assert.deepEqual(gateway.gateway.addresses, [{ name: "public", address: "127.0.0.1", port }]);
    assert.ok(await isHealthy(gateway));
  }
  await open.write(HEALTH);
  assert.equal((await readResponse(open)).status, 200);
  await other.close();
  assert.equal((await gateway.reload(listening(publicListener({ address: "0.0.0.0", port })))).outcome, "published");
  assert.ok(await isHealthy(gateway));
});

test("all addresses of a port stay when one of those that are to replace them cannot be had", async () => {
  const port = await freePort();
  await using gateway = await startGateway(listening(publicListener({ address: "0.0.0.0", port })));
  const parts = [publicListener({ port }), publicListener({ name: "second", address: "127.0.0.2", port })];
  const lacking = publicListener({ name: "third", address: "192.0.2.1", port });
  const outcome = await gateway.reload(listening(...parts, lacking));
  assert.ok(outcome.outcome === "rejected");
  assert.deepEqual(
    outcome.issues.filter(({ severity }) => severity === "error").map(({ path }) => path),
    ["/listeners/2"],
  );
  assert.ok(await isHealthy(gateway));
  assert.deepEqual(gateway.gateway.addresses, [{ name: "public", address: "0.0.0.0", port }]);
  assert.equal((await gateway.reload(listening(...parts))).outcome, "published");
  assert.ok((await isHealthy(gateway)) && gateway.port("second") === port);
  assert.ok(!gateway.log.some(({ code }) => code === "listener_failed"));
});

test("one address of a port is there again when the document with all addresses could not be written", async () => {
  const port = await freePort();
  await using gateway = await startGateway(listening(publicListener({ port })));
  const text = JSON.stringify(listening(publicListener({ address: "0.0.0.0", port })));
  const persist = async (): Promise<void> => await Promise.reject(new Error("read-only"));
  await gateway.gateway.generations.submit({ text, source: "admin" }, { persist });
  await waitUntil(async () => await isOpen(port));
  await waitUntil(async () => await isHealthy(gateway).catch(() => false));
  assert.deepEqual(gateway.gateway.addresses, [{ name: "public", address: "127.0.0.1", port }]);
});

/** What a document is rejected for whose listener has these files for its certificates. */
async function refusalOf(gateway: TestGateway, cert_file: string, key_file: string): Promise<readonly string[]> {
  const secure = listening(publicListener({ protocol: "https", tls: { cert_file, key_file } }));
  const outcome = await gateway.reload(secure);
  assert.ok(outcome.outcome === "rejected");
  return outcome.issues.filter(({ severity }) => severity === "error").map(({ code, path }) => `${code} ${path}`);
}

test("a document whose certificates are not there is rejected: the listener goes on without", async () => {
  await using gateway = await startGateway(listening(publicListener()));
  const refusal = await refusalOf(gateway, gateway.directory.file("a.pem"), gateway.directory.file("a.key"));
  assert.deepEqual(refusal, ["bad_file /listeners/0/tls/cert_file", "bad_file /listeners/0/tls/key_file"]);
  assert.ok(await isHealthy(gateway));
});

const openssl = peer("openssl");
test(
  "a document whose certificates are none for OpenSSL is rejected: the listener goes on without",
  { skip: openssl.skip },
  async () => {
    await using gateway = await startGateway(listening(publicListener()));
    const pair = [gateway.directory.file("weak.pem"), gateway.directory.file("weak.key")] as const;
    const subject = ["-subj", "/CN=weak.test", "-days", "2", "-nodes"];
    const made = ["req", "-x509", "-newkey", "rsa:1024", ...subject, "-out", pair[0], "-keyout", pair[1]];
    const exit = await runProcess(openssl.path, made, { timeoutMs: 30_000 });
    assert.equal(exit.code, 0, exit.stderr);
    assert.deepEqual(await refusalOf(gateway, ...pair), ["compile_failed /listeners/0"]);
    assert.ok(await isHealthy(gateway));
  },
);

test("with workers a listener that cannot be opened changes nothing in any of them, also in one that is replaced", async () => {
  await using gateway = await startWorkers({ routes: [] });
  await using other = await startOther();
  const apply = async (listener: Partial<ListenerInput>): Promise<{ status: number; text: string }> => {
    const response = await fetch(new URL("/config", gateway.adminUrl), {
      method: "PATCH",
      headers: { "content-type": "application/merge-patch+json" },
      body: JSON.stringify({ listeners: [publicListener(listener)] }),
    });
    return { status: response.status, text: await response.text() };
  };
  for (const [wanted, code] of [
    [{ address: "192.0.2.1", port: other.port }, "EADDRNOTAVAIL"],
    [{ port: other.port }, "EADDRINUSE"],
  ] as const) {
    const { status, text } = await apply(wanted);
    assert.equal(status, 400, text);
    const { error } = JSON.parse(text) as { error: { issues: { path: string; code: string }[] } };
    assert.deepEqual(
      error.issues.filter(({ code: each }) => each === "compile_failed").map(({ path }) => path),
      ["/listeners/0"],
    );
    assert.ok(text.includes(code) && text.includes("public"), text);
    for (let time = 0; time < 10; time += 1) assert.equal((await get(gateway.port, "/healthz")).status, 200);
  }
  await other.close();
  assert.equal((await apply({ port: other.port })).status, 200);
  await assert.rejects(get(gateway.port, "/healthz"));
  for (const [at, victim] of gateway.workerPids().slice(0, 2).entries()) {
    process.kill(victim, "SIGKILL");
    await waitUntil(() => gateway.workerPids().length === 3 + at, { what: "another worker", timeoutMs: 30_000 });
    for (let time = 0; time < 10; time += 1) assert.equal((await get(other.port, "/healthz")).status, 200);
  }
});
