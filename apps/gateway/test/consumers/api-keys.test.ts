import assert from "node:assert/strict";
import { test } from "node:test";
import { startOrigin } from "@headworks/testkit";
import { serving, startGateway } from "../gateway-rig.ts";
import { assertNotLogged, keyed, OPEN_AND_CLOSED, seenValues, type RouteInput } from "./consumer-rig.ts";

/** An open route, one that asks for a consumer, and one that the gateway answers itself. */
const ROUTES: RouteInput[] = [
  ...OPEN_AND_CLOSED,
  {
    name: "fixed",
    match: { path: { type: "prefix", value: "/fixed" } },
    action: { type: "respond", status: 200, body: "fixed" },
    deprecation: { since: "Tue, 01 Jan 2019 00:00:00 GMT" },
  },
];

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
      const response = await gateway.send({ path, fields });
      assert.equal(response.status, status);
      if (status === 401) {
        assert.deepEqual(origin.requests.length, seen, "the upstream never sees it");
        const { error } = JSON.parse(response.body.toString()) as { error: Record<string, string> };
        assert.deepEqual([error["code"], error["message"]], ["unauthorized", "unauthorized"]);
        assert.equal(response.header("www-authenticate"), 'ApiKey realm="gateway"');
        assert.equal(response.header("deprecation"), undefined, "a short-circuit answer says nothing of the version");
      } else {
        const request = origin.requests.at(-1);
        assert.deepEqual(seenValues(request, "x-consumer-name"), consumer === undefined ? [] : [consumer]);
        assert.deepEqual(seenValues(request, "x-api-key"), [], "a key is the gateway's business");
      }
    });
  }
  assertNotLogged(gateway, ["acme-key", "zoo-key"]);
});

test("what a client says of itself in any spelling never reaches an upstream", async () => {
  await using origin = await startOrigin();
  await using gateway = await startGateway({
    ...serving("api", [origin.port]),
    routes: OPEN_AND_CLOSED,
    consumers: [keyed("acme", "acme-key")],
  });
  const forged = [
    "X-Consumer-Name: admin",
    "x-consumer-name: root",
    "X_Consumer_Name: admin",
    "X-Consumer_Name: admin",
    "X-Consumer-Groups: gold",
    "X_API_Key: acme-key",
  ];
  await gateway.send({ path: "/open", fields: forged });
  await gateway.send({ path: "/open", fields: [...forged, "X-API-Key: acme-key"] });
  await gateway.send({
    path: "/open",
    fields: [...forged, "X-API-Key: acme-key", "Connection: X-Consumer-Name, X-API-Key, keep-alive"],
  });
  const names = origin.requests.map((request) => seenValues(request, "x-consumer-name"));
  assert.deepEqual(names, [[], ["acme"], ["acme"]], "set last, and not removed by what the client lists");
  for (const { rawHeaders } of origin.requests) {
    const others = rawHeaders.filter((text, at) => at % 2 === 0 && /consumer|api.key/i.test(text));
    assert.equal(
      others.every((name) => name === "X-Consumer-Name"),
      true,
      others.join(),
    );
  }
  const asked = await gateway.send({ path: "/closed", fields: [...forged, "Connection: X-API-Key"] });
  assert.equal(asked.status, 401, "an underscore makes no key");
});

test("forward_credentials lets upstreams see the key that was good, and no other credential", async () => {
  await using origin = await startOrigin();
  await using gateway = await startGateway({
    ...serving("api", [origin.port]),
    gateway: { forward_credentials: true },
    routes: OPEN_AND_CLOSED,
    consumers: [
      keyed("acme", "acme-key"),
      { name: "zoo", credentials: [{ type: "basic", username: "zoo", password: "p" }] },
    ],
  });
  const basic = `Authorization: Basic ${Buffer.from("zoo:wrong").toString("base64")}`;
  await gateway.send({ path: "/open", fields: ["X-API-Key: acme-key", basic] });
  const [request] = origin.requests;
  assert.deepEqual(seenValues(request, "x-api-key"), ["acme-key"]);
  assert.deepEqual(seenValues(request, "authorization"), [], "it was not verified, and an upstream may think it was");
});

test("without consumers and providers nothing is authenticated, and fields pass as they are", async () => {
  await using origin = await startOrigin();
  await using gateway = await startGateway({ ...serving("api", [origin.port]), routes: OPEN_AND_CLOSED });
  const response = await gateway.send({ path: "/open", fields: ["X-API-Key: any", "Authorization: Bearer any"] });
  assert.equal(response.status, 200);
  assert.deepEqual(seenValues(origin.requests[0], "x-api-key"), ["any"]);
  assert.deepEqual(seenValues(origin.requests[0], "authorization"), ["Bearer any"]);
});

test("a reload changes whose key it is, at once", async () => {
  await using origin = await startOrigin();
  const documentOf = (name: string): Parameters<typeof startGateway>[0] => ({
    ...serving("api", [origin.port]),
    routes: OPEN_AND_CLOSED,
    consumers: [keyed(name, "the-key")],
  });
  await using gateway = await startGateway(documentOf("before"));
  await gateway.send({ path: "/closed", fields: ["X-API-Key: the-key"] });
  await gateway.reload(documentOf("after"));
  await gateway.send({ path: "/closed", fields: ["X-API-Key: the-key"] });
  await gateway.reload({ ...serving("api", [origin.port]), routes: OPEN_AND_CLOSED });
  assert.equal((await gateway.send({ path: "/closed", fields: ["X-API-Key: the-key"] })).status, 401);
  assert.deepEqual(
    origin.requests.map((request) => seenValues(request, "x-consumer-name")),
    [["before"], ["after"]],
  );
});

test("a name in the trailers of a body is no name either", async () => {
  const trailers: string[] = [];
  await using origin = await startOrigin({
    handler: (request, response) => {
      request.resume();
      request.on("end", () => {
        trailers.push(...request.rawTrailers);
        response.end("ok");
      });
    },
  });
  await using gateway = await startGateway({
    ...serving("api", [origin.port]),
    routes: OPEN_AND_CLOSED,
    consumers: [keyed("acme", "acme-key")],
  });
  const outcomes: [name: string, status: number, seen: readonly string[]][] = [];
  for (const name of ["X-Consumer-Name", "X_Consumer_Name", "X-API-Key", "X-Forwarded-For", "Authorization"]) {
    const body = `4\r\nbody\r\n0\r\n${name}: admin\r\n\r\n`;
    const fields = ["X-API-Key: acme-key", "Transfer-Encoding: chunked", "TE: trailers", `Trailer: ${name}`];
    const response = await gateway.send({ method: "POST", path: "/open", body, fields });
    outcomes.push([name, response.status, trailers.splice(0)]);
  }
  // What could never be in trailers is refused; the rest is dropped.
  assert.deepEqual(outcomes, [
    ["X-Consumer-Name", 200, []],
    ["X_Consumer_Name", 200, []],
    ["X-API-Key", 200, []],
    ["X-Forwarded-For", 200, []],
    ["Authorization", 400, []],
  ]);
});
