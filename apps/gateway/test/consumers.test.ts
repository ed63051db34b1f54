import assert from "node:assert/strict";
import { test } from "node:test";
import { startOrigin } from "@headworks/testkit";
import type { DocumentInput } from "@headworks/gateway-contract";
import { serving, startGateway, type TestGateway } from "./gateway-rig.ts";

type RouteInput = NonNullable<DocumentInput["routes"]>[number];
type ConsumerInput = NonNullable<DocumentInput["consumers"]>[number];

const proxied = (name: string, prefix: string, more: Partial<RouteInput> = {}): RouteInput => ({
  name,
  service: "api",
  match: { path: { type: "prefix", value: prefix } },
  action: { type: "proxy" },
  ...more,
});

const keyed = (name: string, key: string, more: Partial<ConsumerInput> = {}): ConsumerInput => ({
  name,
  credentials: [{ type: "api_key", key }],
  ...more,
});

/** An open route, one that asks for a consumer, and two that the gateway answers itself. */
const ROUTES: RouteInput[] = [
  proxied("open", "/open"),
  proxied("closed", "/closed", { auth_required: true }),
  {
    name: "fixed",
    match: { path: { type: "prefix", value: "/fixed" } },
    action: { type: "respond", status: 200, body: "fixed" },
    deprecation: { since: "Tue, 01 Jan 2019 00:00:00 GMT" },
  },
];

function pairs(flat: readonly string[]): [string, string][] {
  return flat.flatMap((name, at) =>
    at % 2 === 0 ? [[name.toLowerCase(), flat[at + 1] ?? ""] as [string, string]] : [],
  );
}

test("authentication of a request by its API key", async (t) => {
  await using origin = await startOrigin();
  await using gateway = await startGateway(
    {
      ...serving("api", [origin.port]),
      routes: ROUTES,
      consumers: [keyed("acme", "${ACME_KEY}"), keyed("zoo", "zoo-key-1")],
    },
    { environment: { ACME_KEY: "acme-key-1" } },
  );
  const cases: readonly [title: string, path: string, fields: readonly string[], status: number, consumer?: string][] =
    [
      ["a known key is its consumer's", "/closed", ["X-API-Key: acme-key-1"], 200, "acme"],
      ["another known key is another consumer's", "/open", ["x-api-key: zoo-key-1"], 200, "zoo"],
      ["space around a value is not part of it", "/open", ["x-api-key: \t zoo-key-1 \t"], 200, "zoo"],
      ["without a key a client is anonymous", "/open", [], 200],
      ["a route may ask for a consumer", "/closed", [], 401],
      ["an unknown key is refused where one is asked for", "/closed", ["X-API-Key: acme-key-2"], 401],
      ["an unknown key is refused where none is asked for", "/open", ["X-API-Key: acme-key-2"], 401],
      ["an unknown key is refused where the gateway answers", "/fixed", ["X-API-Key: acme-key-2"], 401],
      ["an empty key is a key", "/open", ["X-API-Key:"], 401],
      ["several lines are refused, even of a good key", "/open", ["X-API-Key: zoo-key-1", "x-api-key: zoo-key-1"], 401],
      ["several lines are refused, good and bad", "/open", ["X-API-Key: zoo-key-1", "X-API-KEY: x"], 401],
      ["a list is not a key", "/open", ["X-API-Key: zoo-key-1, zoo-key-1"], 401],
      ["letter case counts", "/open", ["X-API-Key: ZOO-KEY-1"], 401],
      ["a key's beginning is not the key", "/open", ["X-API-Key: zoo-key"], 401],
      ["the reference is not the key", "/open", ["X-API-Key: ${ACME_KEY}"], 401],
      ["bytes beyond ASCII are just another key", "/open", ["X-API-Key: zoo-key-1\u00e9"], 401],
      ["a name of the object prototype is no key", "/open", ["X-API-Key: __proto__"], 401],
      ["a very long key is no more than wrong", "/open", [`X-API-Key: ${"k".repeat(8000)}`], 401],
    ];
  for (const [title, path, fields, status, consumer] of cases) {
    await t.test(title, async () => {
      const seen = origin.requests.length;
      const answer = await gateway.send({ path, fields });
      assert.equal(answer.status, status);
      if (status === 401) {
        assert.deepEqual(origin.requests.length, seen, "the upstream never sees it");
        const { error } = JSON.parse(answer.body.toString()) as { error: Record<string, string> };
        assert.deepEqual([error["code"], error["message"]], ["unauthorized", "unauthorized"]);
        assert.equal(answer.header("www-authenticate"), 'ApiKey realm="gateway"');
        assert.equal(answer.header("deprecation"), undefined, "a short-circuit answer says nothing of the version");
      } else {
        const fieldsSeen = new Map(pairs(origin.requests.at(-1)?.rawHeaders ?? []));
        assert.equal(fieldsSeen.get("x-consumer-name"), consumer);
        assert.equal(fieldsSeen.has("x-api-key"), false, "a key is the gateway's business");
      }
    });
  }
  assertNotLogged(gateway, ["acme-key", "zoo-key"]);
});

function assertNotLogged(gateway: TestGateway, secrets: readonly string[]): void {
  const log = JSON.stringify(gateway.log).toLowerCase();
  for (const secret of secrets) assert.equal(log.includes(secret.toLowerCase()), false, `${secret} is in the log`);
}
