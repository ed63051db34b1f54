import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { test } from "node:test";
import { startOrigin, waitUntil, type Origin } from "@headworks/testkit";
import { serving, startGateway, type TestGateway } from "./gateway-rig.ts";
import { proxied } from "./route-documents.ts";

/** An origin with one text that PUT changes, as long as it does not say `locked`. */
const startStore = (): Promise<Origin> => {
  let text = "first";
  return startOrigin({
    handler: (request, response) => {
      request.resume();
      const isLocked = request.headers["x-locked"] !== undefined;
      if (request.method === "PUT" && !isLocked) text = "second";
      response.writeHead(isLocked ? 409 : 200).end(request.method === "GET" ? text : "");
    },
  });
};

const documentFor = (origin: Origin) => ({
  ...serving("api", [origin.port]),
  routes: [proxied("api", "/", { cache: { ttl_secs: 60 } })],
});

const read = async (gateway: TestGateway, path = "/", ...fields: string[]): Promise<string> => {
  const response = await gateway.send({ path, fields });
  return `${response.header("x-cache")} ${response.body.toString()}`;
};

test("cache: a request that changes a resource ends what is kept of it and of nothing else (RFC 9111, 4.4)", async () => {
  await using origin = await startStore();
  await using gateway = await startGateway(documentFor(origin));
  for (const path of ["/", "/other"]) assert.equal(await read(gateway, path), "miss first");
  await gateway.send({ method: "PUT", path: "/" });
  assert.equal(await read(gateway), "miss second");
  assert.equal(await read(gateway), "hit second");
  assert.equal(await read(gateway, "/other"), "hit first");
});

test("cache: a change by way of another route counts, too", async () => {
  await using origin = await startStore();
  const listener = (name: string) => ({ name, address: "127.0.0.1", port: 0 });
  const prefix = { type: "prefix", value: "/" } as const;
  await using gateway = await startGateway({
    listeners: [listener("public"), listener("internal")],
    ...serving("api", [origin.port]),
    routes: [
      proxied("read", "/", { service: "api", match: { path: prefix, listener: "public" }, cache: { ttl_secs: 60 } }),
      proxied("write", "/", { service: "api", match: { path: prefix, listener: "internal" } }),
    ],
  });
  assert.equal(await read(gateway), "miss first");
  assert.equal((await gateway.send({ method: "PUT", path: "/", listener: "internal" })).header("x-cache"), undefined);
  assert.equal(await read(gateway), "miss second");
});

test("cache: a change that was refused ends nothing", async () => {
  await using origin = await startStore();
  await using gateway = await startGateway(documentFor(origin));
  assert.equal(await read(gateway), "miss first");
  assert.equal((await gateway.send({ method: "PUT", path: "/", fields: ["X-Locked: 1"] })).status, 409);
  assert.equal(await read(gateway), "hit first");
});

test("cache: an answer that was asked for before a change is not kept after it", async () => {
  const held: ServerResponse[] = [];
  await using origin = await startOrigin({
    handler: (request, response) => {
      request.resume();
      if (request.method === "GET" && held.length === 0) held.push(response);
      else response.end("new");
    },
  });
  await using gateway = await startGateway(documentFor(origin));
  const early = read(gateway);
  await waitUntil(() => held.length === 1);
  await gateway.send({ method: "PUT", path: "/" });
  held[0]?.end("old");
  assert.equal(await early, "miss old");
  assert.equal(await read(gateway), "miss new");
});

test("cache: who is told apart by a key that only the upstream knows is given nobody else's answer", async () => {
  await using origin = await startOrigin({
    handler: (request, response) => response.end(`for ${String(request.headers["x-api-key"])}`),
  });
  await using gateway = await startGateway(documentFor(origin));
  assert.equal(await read(gateway, "/", "X-API-Key: alice"), "bypass for alice");
  assert.equal(await read(gateway, "/", "X-API-Key: bob"), "bypass for bob");
});
