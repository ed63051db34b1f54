import assert from "node:assert/strict";
import { test } from "node:test";
import type { DocumentInput } from "@headworks/gateway-contract";
import { startOrigin } from "@headworks/testkit";
import { serving, startGateway, type TestGateway } from "./gateway-rig.ts";
import { proxied } from "./route-documents.ts";

/** A gateway behind a proxy that it trusts: the test. */
async function behindProxy(ports: readonly number[], document: Partial<DocumentInput> = {}): Promise<TestGateway> {
  return await startGateway({
    ...serving("api", ports, { load_balancer: "ip_hash" }),
    routes: [proxied("api", "/", document.policies === undefined ? {} : { policies: ["p"] })],
    trusted_proxies: ["127.0.0.0/8"],
    ...document,
  });
}

const from = (client: string): { path: string; fields: string[] } => ({
  path: "/",
  fields: [`X-Forwarded-For: ${client}`],
});

test("one client address: behind a trusted proxy, limits, balancing, access log and X-Real-IP go by what it says", async () => {
  await using first = await startOrigin({
    handler: (request, response) => void response.end(`1 ${String(request.headers["x-real-ip"])}`),
  });
  await using second = await startOrigin({
    handler: (request, response) => void response.end(`2 ${String(request.headers["x-real-ip"])}`),
  });
  await using gateway = await behindProxy([first.port, second.port], {
    policies: [{ name: "p", rate_limits: [{ selector: ["ip"], requests_per: { hour: 2 } }] }],
  });
  const chosen = new Set<string>();
  for (let at = 1; at <= 16; at += 1) {
    const client = `192.0.2.${at}`;
    const bodies: string[] = [];
    for (const status of [200, 200, 429]) {
      const response = await gateway.send(from(client));
      assert.equal(response.status, status, client);
      if (status === 200) bodies.push(response.body.toString());
    }
    const [place = "", told] = (bodies[0] ?? "").split(" ");
    assert.deepEqual([bodies[1], told], [bodies[0], client]);
    chosen.add(place);
  }
  assert.deepEqual(chosen.size, 2, "clients are spread over the endpoints");
  const clients = gateway.log.filter(({ target }) => target === "gateway::access").map(({ client }) => client);
  assert.equal(clients.filter((client) => client === "192.0.2.7").length, 3);
});

test("one client address: however it is spelled, it is one; a network of 64 bits is one client to limits", async () => {
  await using origin = await startOrigin({
    handler: (request, response) => void response.end(request.headers["x-real-ip"]),
  });
  await using gateway = await behindProxy([origin.port], {
    policies: [{ name: "p", rate_limits: [{ selector: ["ip"], requests_per: { hour: 1 } }] }],
  });
  for (const [client, status, told] of [
    ["2001:DB8:0::0:1", 200, "2001:db8::1"],
    ["2001:db8::2", 429, undefined],
    ["[2001:db8::ffff]:443", 429, undefined],
    ["2001:db8:0:1::1", 200, "2001:db8:0:1::1"],
    ["::ffff:192.0.2.1", 200, "192.0.2.1"],
    ["192.0.2.1:8080", 429, undefined],
    ["192.0.2.2", 200, "192.0.2.2"],
  ] as const) {
    const response = await gateway.send(from(client));
    assert.equal(response.status, status, client);
    if (told !== undefined) assert.equal(response.body.toString(), told);
  }
});

test("one client address: a peer that is not trusted is the client, whatever it says", async () => {
  await using origin = await startOrigin();
  await using gateway = await behindProxy([origin.port], {
    trusted_proxies: [],
    policies: [{ name: "p", rate_limits: [{ selector: ["ip"], requests_per: { hour: 1 } }] }],
  });
  assert.equal((await gateway.send(from("192.0.2.1"))).status, 200);
  assert.equal((await gateway.send(from("192.0.2.2"))).status, 429);
});
