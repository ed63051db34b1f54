import assert from "node:assert/strict";
import { test } from "node:test";
import type { DocumentInput } from "@headworks/gateway-contract";
import {
  rawClient,
  readResponse,
  startOrigin,
  startRawServer,
  waitUntil,
  type RawConnection,
} from "@headworks/testkit";
import { serving, startGateway, type TestGateway } from "./gateway-rig.ts";
import { proxied } from "./route-documents.ts";

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: a.test\r\n\r\n`;

/** A gateway in front of an origin that answers with the path, and to `/held` only when it is told to. */
interface Held extends AsyncDisposable {
  readonly gateway: TestGateway;
  /** A client that asked once already: memory of its own is only had by the first read of a connection. */
  client(): Promise<RawConnection>;
  /** Lets `/held` be answered. */
  reply(): void;
  /** `/held` has arrived. */
  readonly arrived: Promise<void>;
  /** The connection on which it arrived is gone. */
  readonly gone: Promise<void>;
}

async function startHeld(more: Partial<DocumentInput> = {}): Promise<Held> {
  const arrived = Promise.withResolvers<void>();
  const allowed = Promise.withResolvers<void>();
  const gone = Promise.withResolvers<void>();
  const origin = await startOrigin({
    handler: (request, response) => {
      if (request.url !== "/held") return void response.end(request.url);
      response.socket?.once("close", () => gone.resolve());
      void allowed.promise.then(() => response.end(request.url));
      arrived.resolve();
    },
  });
  const gateway = await startGateway({ ...serving("api", [origin.port]), routes: [proxied("api")], ...more });
  return {
    gateway,
    arrived: arrived.promise,
    gone: gone.promise,
    reply: () => allowed.resolve(),
    client: async () => {
      const client = await rawClient(gateway.port());
      await client.write(get("/first"));
      assert.equal((await readResponse(client)).body.toString(), "/first");
      return client;
    },
    [Symbol.asyncDispose]: async () => {
      allowed.resolve();
      await gateway[Symbol.asyncDispose]();
      await origin[Symbol.asyncDispose]();
    },
  };
}

test("a client that resets its connection while a request waits behind another one is noticed at once", async () => {
  await using held = await startHeld();
  const client = await held.client();
  await client.write(get("/held") + get("/next"));
  await held.arrived;
  client.socket.resetAndDestroy();
  await held.gone;
});

test("a client that ends its side behind requests that wait gets all answers, then the end", async () => {
  await using held = await startHeld();
  await using client = await held.client();
  await client.write(get("/held") + get("/second") + get("/third"));
  client.socket.end();
  await held.arrived;
  // The end has arrived too by now, unless it was lost.
  assert.equal((await held.gateway.send({ path: "/other" })).status, 200);
  held.reply();
  for (const path of ["/held", "/second", "/third"]) {
    assert.equal((await readResponse(client)).body.toString(), path);
  }
  assert.equal((await client.collect()).length, 0);
});

test("a client that sends on while its request is answered is read up to a bound", async () => {
  await using held = await startHeld();
  await using client = await held.client();
  await client.write(get("/held"));
  await held.arrived;
  client.socket.write(get("/next").repeat(1_000_000));
  for (let count = 0; count < 50; count += 1) {
    assert.equal((await held.gateway.send({ path: "/other" })).status, 200);
  }
  assert.ok(client.socket.writableLength > 0, "all of it was taken");
});

test("bytes that come while an answer is not taken give its client no more time", async () => {
  const reply = Buffer.alloc(64 * 1_048_576);
  await using origin = await startOrigin({ handler: (_request, response) => response.end(reply) });
  await using gateway = await startGateway({
    listeners: [{ name: "public", address: "127.0.0.1", port: 0, idle_timeout_ms: 400 }],
    ...serving("api", [origin.port]),
    routes: [proxied("api")],
  });
  await using client = await rawClient(gateway.port());
  client.socket.pause();
  await client.write(get("/large"));
  const drip = setInterval(() => client.socket.write("G"), 50);
  try {
    await waitUntil(() => gateway.log.some(({ msg }) => msg === "access"));
  } finally {
    clearInterval(drip);
  }
});

test("a tunnel that begins behind the end of its client passes what came before it, and the end", async () => {
  const arrived = Promise.withResolvers<void>();
  const allowed = Promise.withResolvers<void>();
  const taken = Promise.withResolvers<string>();
  await using origin = await startRawServer(async (connection) => {
    const head = (await connection.readUntil("\r\n\r\n")).toString("latin1");
    if (!head.startsWith("GET /tunnel")) {
      await connection.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
      return void (await connection.closed);
    }
    arrived.resolve();
    await allowed.promise;
    await connection.write("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n");
    taken.resolve((await connection.collect()).toString());
    connection.socket.end("answer");
  });
  await using gateway = await startGateway({ ...serving("api", [origin.port]), routes: [proxied("api")] });
  await using client = await rawClient(gateway.port());
  const fields = "Host: a.test\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: AAAA\r\n\r\n";
  await client.write(`GET /tunnel HTTP/1.1\r\n${fields}question`);
  client.socket.end();
  await arrived.promise;
  assert.equal((await gateway.send({ path: "/other" })).status, 200);
  allowed.resolve();
  assert.equal(await taken.promise, "question");
  assert.match((await client.collect()).toString(), /\r\n\r\nanswer$/);
});
