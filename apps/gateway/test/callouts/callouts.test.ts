import assert from "node:assert/strict";
import { test } from "node:test";
import type { Callout } from "@headworks/gateway-contract";
import { waitUntil } from "@headworks/testkit";
import { EgressFilter } from "#egress/egress-filter.ts";
import { documentWith } from "../egress/documents.ts";
import { response, readRequest, startReceiver, type Reply } from "../webhooks/receiver.ts";
import { ask, calloutRig, codeOf, documentWithCallout, requestOf, ROUTE } from "./callout-rig.ts";

const json = (body: string, status = 200): string =>
  `HTTP/1.1 ${status} Whatever\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;

const YES = json('{"result": true}');
const NO = json('{"result": false}');

interface Case {
  readonly name: string;
  readonly reply: Reply;
  readonly callout?: Partial<Callout>;
  readonly expected: string;
}

const CASES: readonly Case[] = [
  { name: "opa: true passes", reply: YES, expected: "pass" },
  { name: "opa: false is refused", reply: NO, expected: "policy_denied" },
  {
    name: "opa: an object that allows passes",
    reply: json('{"result": {"allow": true, "why": "x"}}'),
    expected: "pass",
  },
  {
    name: "opa: an object that does not allow is refused",
    reply: json('{"result": {"allow": false}}'),
    expected: "policy_denied",
  },
  { name: "opa: an undefined policy is no permission", reply: json("{}"), expected: "policy_denied" },
  {
    name: "opa: a result of another kind is an error",
    reply: json('{"result": "true"}'),
    expected: "policy_unavailable",
  },
  { name: "opa: a result of 1 is an error", reply: json('{"result": 1}'), expected: "policy_unavailable" },
  { name: "opa: a null result is an error", reply: json('{"result": null}'), expected: "policy_unavailable" },
  {
    name: "opa: an object without allow is an error",
    reply: json('{"result": {"Allow": true}}'),
    expected: "policy_unavailable",
  },
  {
    name: "opa: allow of another kind is an error",
    reply: json('{"result": {"allow": "yes"}}'),
    expected: "policy_unavailable",
  },
  { name: "opa: a list is an error", reply: json('{"result": [true]}'), expected: "policy_unavailable" },
  { name: "opa: what is no JSON is an error", reply: json("allow"), expected: "policy_unavailable" },
  { name: "opa: JSON that is no object is an error", reply: json("true"), expected: "policy_unavailable" },
  {
    name: "opa: another status is an error, whatever the body says",
    reply: json('{"result": true}', 201),
    expected: "policy_unavailable",
  },
  { name: "opa: 403 is an error, not a decision", reply: json("{}", 403), expected: "policy_unavailable" },
  {
    name: "opa: a redirect is an error and is not followed",
    reply: response(307, "Location: /allow"),
    expected: "policy_unavailable",
  },
  {
    name: "opa: a body above the limit is an error",
    reply: json(`{"result": true, "x": "${"x".repeat(70_000)}"}`),
    expected: "policy_unavailable",
  },
  {
    name: "opa: a cut body is an error",
    reply: 'HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"result": true}',
    expected: "policy_unavailable",
  },
  {
    name: "opa: a malformed answer is an error",
    reply: 'HTTP/1.1 200 OK\nContent-Length: 16\n\n{"result": true}',
    expected: "policy_unavailable",
  },
  {
    name: "opa: a dropped connection is an error",
    reply: (connection) => connection.destroy(),
    expected: "policy_unavailable",
  },
  {
    name: "opa: a decision point that does not answer in timeout_ms is an error",
    reply: async (connection) => void (await connection.closed),
    callout: { timeout_ms: 1000 },
    expected: "policy_unavailable",
  },
  {
    name: "opa: a body that drips is bounded by timeout_ms",
    reply: async (connection) => {
      connection.socket.write("HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n");
      while (!connection.socket.destroyed) {
        connection.socket.write(" ");
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    },
    callout: { timeout_ms: 1000 },
    expected: "policy_unavailable",
  },
  { name: "on_error allow: an error passes", reply: json("{}", 500), callout: { on_error: "allow" }, expected: "pass" },
  {
    name: "on_error allow: a refusal is a refusal",
    reply: NO,
    callout: { on_error: "allow" },
    expected: "policy_denied",
  },
  ...[200, 201, 204, 299].map((status): Case => ({
    name: `http: ${status} passes`,
    reply: response(status),
    callout: { type: "http" },
    expected: "pass",
  })),
  ...[401, 403].map((status): Case => ({
    name: `http: ${status} is refused`,
    reply: response(status),
    callout: { type: "http" },
    expected: "policy_denied",
  })),
  ...[302, 400, 404, 429, 500, 503].map((status): Case => ({
    name: `http: ${status} is an error`,
    reply: response(status),
    callout: { type: "http" },
    expected: "policy_unavailable",
  })),
  {
    name: "http: the status decides, however long the body is",
    reply: `HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n${"x".repeat(200_000)}`,
    callout: { type: "http" },
    expected: "pass",
  },
];

for (const { name, reply, callout, expected } of CASES) {
  test(name, async () => {
    await using receiver = await startReceiver(reply);
    await using rig = calloutRig();
    const document = documentWithCallout({ type: "opa", url: receiver.url, timeout_ms: 5000, ...callout });
    const compiled = rig.publish(document);
    assert.equal(codeOf(await ask(compiled, document, requestOf())), expected);
    assert.equal(receiver.requests.length, 1, "asked once, never again");
    const isError = expected === "policy_unavailable" || (callout?.on_error === "allow" && expected === "pass");
    assert.equal(rig.logged.coded("callout_failed").length, isError ? 1 : 0);
    await rig.callouts.stop?.();
    await waitUntil(() => receiver.connections.every(({ ended }) => ended), { what: "every connection was closed" });
  });
}

test("a decision point is told facts of the request, and neither credentials nor values of the query", async () => {
  await using receiver = await startReceiver(YES);
  await using rig = calloutRig();
  const document = documentWithCallout({ type: "opa", url: receiver.url, headers: { "X-Token": "${TOKEN}" } });
  const compiled = rig.publish(document, { "${TOKEN}": "opa-token" });
  const request = requestOf({
    method: "PATCH",
    target: "/v1/things/7?id=querysecret&flag&=x&id=2",
    consumer: "acme",
    fields: [
      "Accept",
      "text/html",
      "accept",
      "application/json",
      "X-API-Key",
      "topsecret",
      "Authorization",
      "Bearer topsecret",
      "Cookie",
      "sid=topsecret",
      "User-Agent",
      "curl/8",
      "X-Custom",
      "topsecret",
      "Proxy-Authorization",
      "topsecret",
    ],
  });
  assert.equal(codeOf(await ask(compiled, document, request)), "pass");
  const [asked] = receiver.requests;
  assert.equal(asked?.requestLine, "POST /hook HTTP/1.1");
  assert.deepEqual(JSON.parse(asked?.body ?? ""), {
    input: {
      method: "PATCH",
      host: "api.test",
      path: "/v1/things/7",
      query_names: ["id", "flag", "id"],
      route: "a",
      listener: "public",
      client_address: "127.0.0.1",
      consumer: { name: "acme", groups: ["gold"], credential: "api_key" },
      headers: { accept: "text/html, application/json", "user-agent": "curl/8" },
    },
  });
  assert.equal(asked?.header("x-token"), "opa-token");
  assert.equal(asked?.header("x-request-id"), "req-1");
  assert.equal(asked?.header("content-type"), "application/json");
  assert.doesNotMatch(asked?.body ?? "", /topsecret|querysecret/);
  assert.doesNotMatch(rig.logged.text, /opa-token|topsecret|querysecret/);
});

test("the egress filter stands before the decision point, and a denial counts as an error", async () => {
  await using receiver = await startReceiver(YES);
  await using rig = calloutRig();
  rig.dialer.apply({ filter: new EgressFilter({ deny: ["127.0.0.0/8"] }), dnsTimeoutMs: 1000 });
  const document = documentWithCallout({ type: "opa", url: receiver.url });
  assert.equal(codeOf(await ask(rig.publish(document), document, requestOf())), "policy_unavailable");
  assert.equal(receiver.connections.length, 0);
  assert.equal(rig.dialer.denied.get("callout"), 1);
  assert.equal(rig.logged.coded("ssrf_denied").length, 1);
  assert.equal(rig.logged.coded("callout_failed")[0]?.["why"], "ssrf_denied");
});

test("a callout that stands at every level is asked once", async () => {
  await using receiver = await startReceiver(YES);
  await using rig = calloutRig();
  const policies = ["decide"];
  const document = documentWith({
    gateway: { global_policies: policies },
    listeners: [{ name: "public", address: "127.0.0.1", port: 0, policies }],
    services: [{ name: "s", upstream: "u", policies }],
    routes: [{ ...ROUTE, policies: ["decide", "decide"] }],
    consumers: [{ name: "acme", policies }],
    policies: [{ name: "decide", callout: { type: "opa", url: receiver.url } }],
  });
  assert.equal(codeOf(await ask(rig.publish(document), document, requestOf({ consumer: "acme" }))), "pass");
  assert.equal(receiver.requests.length, 1);
});

const LEVELS: readonly [level: string, names: Record<string, string[]>][] = [
  ["gateway", { gateway: ["decide"] }],
  ["listener", { listener: ["decide"] }],
  ["service", { service: ["decide"] }],
  ["route", { route: ["decide"] }],
  ["consumer", { consumer: ["decide"] }],
];
for (const [level, names] of LEVELS) {
  test(`a callout may stand at the level ${level}`, async () => {
    await using receiver = await startReceiver(NO);
    await using rig = calloutRig();
    const document = documentWith({
      gateway: { global_policies: names["gateway"] ?? [] },
      listeners: [{ name: "public", address: "127.0.0.1", port: 0, policies: names["listener"] ?? [] }],
      services: [{ name: "s", upstream: "u", policies: names["service"] ?? [] }],
      routes: [{ ...ROUTE, policies: names["route"] ?? [] }],
      consumers: [{ name: "acme", policies: names["consumer"] ?? [] }, { name: "other" }],
      policies: [{ name: "decide", callout: { type: "opa", url: receiver.url } }, { name: "plain" }],
    });
    const compiled = rig.publish(document);
    assert.equal(codeOf(await ask(compiled, document, requestOf({ consumer: "acme" }))), "policy_denied");
    assert.equal(receiver.requests.length, 1);
    const others = codeOf(await ask(compiled, document, requestOf({ consumer: "other" })));
    assert.equal(others, level === "consumer" ? "pass" : "policy_denied");
  });
}

test("a route over which no callout stands has no gate", async () => {
  await using rig = calloutRig();
  const document = documentWith({
    routes: [{ ...ROUTE, policies: ["plain"] }],
    policies: [{ name: "plain" }, { name: "unused", callout: { type: "opa", url: "http://127.0.0.1:1/" } }],
  });
  assert.equal(await ask(rig.publish(document), document, requestOf()), "no gate");
});

test("all decision points over a request must agree, and the first refusal ends it", async () => {
  await using first = await startReceiver(YES);
  await using second = await startReceiver(NO);
  await using third = await startReceiver(YES);
  await using rig = calloutRig();
  const urls = [first.url, second.url, third.url];
  const document = documentWith({
    gateway: { global_policies: ["p0"] },
    routes: [{ ...ROUTE, policies: ["p1", "p2"] }],
    policies: urls.map((url, index) => ({ name: `p${index}`, callout: { type: "opa", url } })),
  });
  assert.equal(codeOf(await ask(rig.publish(document), document, requestOf())), "policy_denied");
  assert.deepEqual(
    [first, second, third].map(({ requests }) => requests.length),
    [1, 1, 0],
  );
  assert.deepEqual(
    rig.callouts.counts().map(({ policy, outcome, count }) => `${policy} ${outcome} ${count}`),
    ["p0 allowed 1", "p1 denied 1"],
  );
});

const DRY: readonly [name: string, reply: Reply, status: number | undefined][] = [
  ["a refusal", NO, 403],
  ["an error", json("{}", 500), 503],
  ["a permission", YES, undefined],
];
for (const [name, reply, status] of DRY) {
  test(`dry_run: ${name} lets the request pass${status === undefined ? "" : " and is reported"}`, async () => {
    await using receiver = await startReceiver(reply);
    await using rig = calloutRig();
    const document = documentWithCallout({ type: "opa", url: receiver.url }, { dry_run: true });
    assert.equal(codeOf(await ask(rig.publish(document), document, requestOf())), "pass");
    const lines = rig.logged.coded("policy_dry_run");
    assert.deepEqual(
      lines.map((line) => line["would_be_status"]),
      status === undefined ? [] : [status],
    );
    assert.deepEqual(rig.dryRuns, status === undefined ? [] : ["a"]);
  });
}

test("cache_ttl_ms: the same question is answered from memory, another one is asked", async () => {
  await using receiver = await startReceiver(YES, NO);
  await using rig = calloutRig();
  const document = documentWithCallout({ type: "opa", url: receiver.url, cache_ttl_ms: 60_000 });
  const compiled = rig.publish(document);
  const got: string[] = [];
  for (const target of ["/a", "/b", "/a", "/b", "/a?x=1"]) {
    got.push(codeOf(await ask(compiled, document, requestOf({ target }))));
  }
  assert.deepEqual(got, ["pass", "policy_denied", "pass", "policy_denied", "policy_denied"]);
  assert.equal(receiver.requests.length, 3);
});

test("cache_ttl_ms: errors are not remembered", async () => {
  await using receiver = await startReceiver(json("{}", 500), YES);
  await using rig = calloutRig();
  const document = documentWithCallout({ type: "opa", url: receiver.url, cache_ttl_ms: 60_000 });
  const compiled = rig.publish(document);
  assert.equal(codeOf(await ask(compiled, document, requestOf())), "policy_unavailable");
  assert.equal(codeOf(await ask(compiled, document, requestOf())), "pass");
});

test("cache_ttl_ms: the same question that many ask at once is asked once", async () => {
  const { promise: released, resolve: release } = Promise.withResolvers<undefined>();
  await using receiver = await startReceiver(async (connection) => {
    await released;
    await connection.write(YES);
  });
  await using rig = calloutRig();
  const document = documentWithCallout({ type: "opa", url: receiver.url, cache_ttl_ms: 60_000, timeout_ms: 9000 });
  const compiled = rig.publish(document);
  const responses = Array.from({ length: 50 }, async () => codeOf(await ask(compiled, document, requestOf())));
  await waitUntil(() => receiver.requests.length === 1);
  release(undefined);
  assert.deepEqual(new Set(await Promise.all(responses)), new Set(["pass"]));
  assert.equal(receiver.requests.length, 1);
});

test("without cache_ttl_ms every request is asked about", async () => {
  await using receiver = await startReceiver(YES, NO);
  await using rig = calloutRig();
  const document = documentWithCallout({ type: "opa", url: receiver.url });
  const compiled = rig.publish(document);
  assert.equal(codeOf(await ask(compiled, document, requestOf())), "pass");
  assert.equal(codeOf(await ask(compiled, document, requestOf())), "policy_denied");
});

test("questions beyond the limit are errors at once, so that a slow decision point fills no memory", async () => {
  const { promise: released, resolve: release } = Promise.withResolvers<undefined>();
  await using receiver = await startReceiver(async (connection) => {
    await released;
    await connection.write(YES);
  });
  await using rig = calloutRig();
  const document = documentWithCallout({ type: "opa", url: receiver.url, timeout_ms: 60_000 });
  const compiled = rig.publish(document);
  const asked = Array.from({ length: 512 }, async () => codeOf(await ask(compiled, document, requestOf())));
  assert.equal(codeOf(await ask(compiled, document, requestOf())), "policy_unavailable");
  assert.equal(rig.logged.coded("callout_failed")[0]?.["why"], "saturated");
  release(undefined);
  assert.deepEqual(new Set(await Promise.all(asked)), new Set(["pass"]));
});

test("a decision point that keeps connections open is asked over them; a new generation closes them", async () => {
  await using receiver = await startReceiver(async (connection) => {
    await connection.write(YES);
    while ((await readRequest(connection).catch(() => undefined)) !== undefined) await connection.write(NO);
  });
  await using rig = calloutRig();
  const document = documentWithCallout({ type: "opa", url: receiver.url });
  const compiled = rig.publish(document);
  const got: string[] = [];
  for (let count = 0; count < 3; count += 1) got.push(codeOf(await ask(compiled, document, requestOf())));
  assert.deepEqual(got, ["pass", "policy_denied", "policy_denied"]);
  assert.equal(receiver.connections.length, 1);
  const next = rig.publish(document);
  await waitUntil(() => receiver.connections[0]?.ended, { timeoutMs: 2000 });
  assert.equal(codeOf(await ask(next, document, requestOf())), "pass");
  assert.equal(receiver.connections.length, 2);
});

test("a connection that is in use when a new generation comes is closed behind its decision", async () => {
  const { promise: released, resolve: release } = Promise.withResolvers<undefined>();
  await using receiver = await startReceiver(async (connection) => {
    await released;
    await connection.write(YES);
    await connection.closed;
  });
  await using rig = calloutRig();
  const document = documentWithCallout({ type: "opa", url: receiver.url, timeout_ms: 9000 });
  const asked = ask(rig.publish(document), document, requestOf());
  await waitUntil(() => receiver.requests.length === 1);
  rig.publish(document);
  release(undefined);
  assert.equal(codeOf(await asked), "pass");
  await waitUntil(() => receiver.connections[0]?.ended, { timeoutMs: 2000 });
});

test("a kept connection that the decision point closed meanwhile costs no decision", async () => {
  await using receiver = await startReceiver(async (connection) => {
    await connection.write(YES);
    await readRequest(connection);
    // The request came, and instead of an answer the connection goes.
    connection.destroy();
  }, YES);
  await using rig = calloutRig();
  const document = documentWithCallout({ type: "opa", url: receiver.url });
  const compiled = rig.publish(document);
  assert.equal(codeOf(await ask(compiled, document, requestOf())), "pass");
  assert.equal(codeOf(await ask(compiled, document, requestOf())), "pass");
  assert.equal(receiver.connections.length, 2);
});

test("bytes behind a decision never become the next one", async () => {
  await using receiver = await startReceiver(async (connection) => {
    await connection.write(NO + YES);
    await connection.closed;
  }, NO);
  await using rig = calloutRig();
  const document = documentWithCallout({ type: "opa", url: receiver.url });
  const compiled = rig.publish(document);
  assert.equal(codeOf(await ask(compiled, document, requestOf())), "policy_denied");
  assert.equal(codeOf(await ask(compiled, document, requestOf())), "policy_denied");
  assert.equal(receiver.connections.length, 2);
});

test("a connection whose decision announced its end is not used again, although it stays open", async () => {
  await using receiver = await startReceiver(async (connection) => {
    await connection.write(NO.replace("\r\n", "\r\nConnection: close\r\n"));
    if ((await readRequest(connection).catch(() => undefined)) !== undefined) await connection.write(YES);
  });
  await using rig = calloutRig();
  const document = documentWithCallout({ type: "opa", url: receiver.url });
  const compiled = rig.publish(document);
  assert.equal(codeOf(await ask(compiled, document, requestOf())), "policy_denied");
  assert.equal(codeOf(await ask(compiled, document, requestOf())), "policy_denied");
  assert.equal(receiver.connections.length, 2);
});

test("unasked bytes on an idle connection end it", async () => {
  const { promise: decided, resolve: onDecided } = Promise.withResolvers<undefined>();
  await using receiver = await startReceiver(async (connection) => {
    await connection.write(NO);
    await decided;
    await connection.write(YES);
    await connection.closed;
  }, NO);
  await using rig = calloutRig();
  const document = documentWithCallout({ type: "opa", url: receiver.url });
  const compiled = rig.publish(document);
  assert.equal(codeOf(await ask(compiled, document, requestOf())), "policy_denied");
  onDecided(undefined);
  // Well below the time after which an idle connection is closed anyway.
  await waitUntil(() => receiver.connections[0]?.ended, { timeoutMs: 2000 });
  assert.equal(codeOf(await ask(compiled, document, requestOf())), "policy_denied");
});

test("a decision point that is down is logged once a second, with the number of requests", async () => {
  await using rig = calloutRig();
  const document = documentWithCallout({ type: "opa", url: "http://127.0.0.1:9/" });
  const compiled = rig.publish(document);
  for (let count = 0; count < 20; count += 1) await ask(compiled, document, requestOf());
  assert.equal(rig.logged.coded("callout_failed").length, 1);
  assert.deepEqual(rig.callouts.counts(), [{ policy: "decide", outcome: "error_denied", count: 20 }]);
});
