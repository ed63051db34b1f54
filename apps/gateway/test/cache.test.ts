import assert from "node:assert/strict";
import type { RequestListener, ServerResponse } from "node:http";
import { test } from "node:test";
import { lengthFraming } from "@headworks/http1";
import {
  FakeClock,
  rawClient,
  startOrigin,
  startRawServer,
  waitUntil,
  type Origin,
  type RawResponse,
} from "@headworks/testkit";
import { createCache } from "#slices/cache/cache.slice.ts";
import { compiledRoute, documentOf, requestFor, routeWith } from "./routing/requests.ts";
import { serving, startGateway, type TestGateway } from "./gateway-rig.ts";
import { compileScope, proxied, type RouteInput } from "./route-documents.ts";

type CacheInput = NonNullable<RouteInput["cache"]>;

/** An origin that numbers its answers. */
const counting = (headers: Record<string, string> = {}, status = 200): RequestListener => {
  let count = 0;
  return (request, response) => {
    request.resume();
    count += 1;
    response.writeHead(status, { "Content-Type": "text/plain", ...headers }).end(`answer ${count}`);
  };
};

const documentFor = (origin: { readonly port: number }, cache: CacheInput, more: Partial<RouteInput> = {}) => ({
  ...serving("api", [origin.port]),
  routes: [proxied("api", "/", { cache, ...more })],
});

const said = (response: RawResponse): string =>
  `${response.status} ${response.header("x-cache")} ${response.body.toString()}`;
const ask = async (gateway: TestGateway, path = "/", ...fields: string[]): Promise<string> =>
  said(await gateway.send({ path, fields }));

test("cache: x-cache miss, then hit with Age until the age is ttl_secs, then miss", async () => {
  await using origin = await startOrigin({
    handler: counting({ ETag: '"v"', Age: "7", "X-Cache": "HIT of a CDN", "X-Own": "kept" }),
  });
  const clock = new FakeClock();
  await using gateway = await startGateway(documentFor(origin, { ttl_secs: 10 }), { clock });
  assert.equal(await ask(gateway), "200 miss answer 1");
  await clock.advance(2900);
  const hit = await gateway.send({ path: "/" });
  assert.equal(said(hit), "200 hit answer 1");
  assert.deepEqual(
    ["age", "etag", "x-own", "content-type", "content-length"].map((name) => hit.header(name)),
    ["9", '"v"', "kept", "text/plain", "8"],
  );
  assert.equal(hit.headers.filter(([name]) => /^(x-cache|date|age)$/i.test(name)).length, 3);
  await clock.advance(100);
  assert.equal(await ask(gateway), "200 miss answer 2");
  assert.equal(origin.requests.length, 2);
});

test("cache: conditional requests get 304 from what is kept", async () => {
  await using origin = await startOrigin({ handler: counting({ ETag: '"v"', "X-Own": "kept" }) });
  await using gateway = await startGateway(documentFor(origin, { ttl_secs: 10 }));
  await ask(gateway);
  const response = await gateway.send({ path: "/", fields: ['If-None-Match: W/"v"'] });
  assert.deepEqual([said(response), response.header("etag"), response.header("x-own")], ["304 hit ", '"v"', undefined]);
  assert.equal(origin.requests.length, 1);
});

for (const [what, request] of [
  ["Authorization", { fields: ["Authorization: Basic eDp5"] }],
  ["Cookie", { fields: ["Cookie: a=b"] }],
  ["Range", { fields: ["Range: bytes=0-1"] }],
  ["another method", { method: "OPTIONS" }],
  ["a body", { fields: ["Content-Length: 1"], body: "x" }],
] as const) {
  test(`cache: bypass of requests with ${what}, whatever is kept`, async () => {
    await using origin = await startOrigin({ handler: counting({ "X-Cache": "HIT of a CDN" }) });
    await using gateway = await startGateway(documentFor(origin, { ttl_secs: 10 }));
    await ask(gateway);
    const response = await gateway.send({ path: "/", ...request });
    const markers = response.headers.filter(([name]) => /^x-cache$/i.test(name)).map(([, value]) => value);
    assert.deepEqual([markers, origin.requests.length], [["bypass"], 2]);
    assert.equal(await ask(gateway), "200 hit answer 1", "and nothing of it is kept");
  });
}

for (const [what, headers, status] of [
  ["non-200", {}, 404],
  ["Set-Cookie", { "Set-Cookie": "a=b" }, 200],
  ["no-store", { "Cache-Control": "no-store" }, 200],
  ["a Vary that is not configured", { Vary: "Accept-Language" }, 200],
] as const) {
  test(`cache: answers with ${what} are not kept`, async () => {
    await using origin = await startOrigin({ handler: counting(headers, status) });
    await using gateway = await startGateway(documentFor(origin, { ttl_secs: 10, coalescing: {} }));
    for (const count of [1, 2]) assert.equal(await ask(gateway), `${status} miss answer ${count}`);
  });
}

test("cache: bodies over max_body_bytes pass and are not kept, whether or not they say their length", async () => {
  await using origin = await startOrigin({
    handler: (request, response) => {
      const body = "x".repeat(2000);
      if (request.url === "/known") response.setHeader("Content-Length", body.length);
      response.writeHead(200);
      response.write(body.slice(0, 900));
      setImmediate(() => response.end(body.slice(900)));
    },
  });
  await using gateway = await startGateway(documentFor(origin, { ttl_secs: 10, max_body_bytes: 1000 }));
  for (const path of ["/known", "/unknown"]) {
    for (const turn of [1, 2]) {
      const response = await gateway.send({ path });
      assert.deepEqual([response.header("x-cache"), response.body.length], ["miss", 2000], `${path} ${turn}`);
    }
  }
});

test("cache: an answer that breaks off is not kept", async () => {
  let count = 0;
  await using upstream = await startRawServer(async (connection) => {
    await connection.readUntil("\r\n\r\n");
    count += 1;
    await connection.write(`HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n${count === 1 ? "half" : "0123456789"}`);
  });
  await using gateway = await startGateway(documentFor(upstream, { ttl_secs: 10, coalescing: {} }));
  await assert.rejects(gateway.send({ path: "/" }));
  assert.equal(await ask(gateway), "200 miss 0123456789");
});

test("cache: a client that goes away in the middle leaves nothing half", async () => {
  const responses: ServerResponse[] = [];
  await using origin = await startOrigin({
    handler: (_request, response) => {
      response.writeHead(200, { "Content-Length": "10" }).write("01234");
      responses.push(response);
      if (responses.length > 1) response.end("56789");
    },
  });
  await using gateway = await startGateway(documentFor(origin, { ttl_secs: 10, coalescing: {} }));
  await using client = await rawClient(gateway.port());
  await client.write("GET / HTTP/1.1\r\nHost: gateway.test\r\n\r\n");
  await client.readUntil("01234");
  client.reset();
  assert.equal(await ask(gateway), "200 miss 0123456789");
});

test("cache: key: consumers, hosts and queries do not see each other's answers", async () => {
  await using origin = await startOrigin({ handler: counting() });
  await using gateway = await startGateway({
    ...documentFor(origin, { ttl_secs: 10, vary: ["X-Tenant"] }),
    consumers: ["a", "b"].map((name) => ({ name, credentials: [{ type: "api_key" as const, key: `key-of-${name}` }] })),
  });
  const variants = [
    [],
    ["X-API-Key: key-of-a"],
    ["X-API-Key: key-of-b"],
    ["Host: evil.test"],
    ["X-Tenant: t"],
    ["X-Tenant:"],
  ];
  for (const outcome of ["miss", "hit"]) {
    for (const [index, fields] of variants.entries()) {
      assert.equal(await ask(gateway, "/", ...fields), `200 ${outcome} answer ${index + 1}`, fields.join());
    }
  }
  assert.equal(await ask(gateway, "/?a"), "200 miss answer 7");
});

test("cache: key: what a trusted proxy says of scheme, host and port tells answers apart", async () => {
  await using origin = await startOrigin({ handler: counting() });
  const document = documentFor(origin, { ttl_secs: 10 });
  await using gateway = await startGateway({ ...document, gateway: { trusted_proxies: ["127.0.0.0/8"] } });
  const variants = [
    [],
    ["X-Forwarded-Host: a.test"],
    ["X-Forwarded-Host: b.test"],
    ["X-Forwarded-Proto: https"],
    ["X-Forwarded-Port: 8443"],
  ];
  for (const outcome of ["miss", "hit"]) {
    for (const [index, fields] of variants.entries()) {
      assert.equal(await ask(gateway, "/", ...fields), `200 ${outcome} answer ${index + 1}`, fields.join());
    }
  }
  assert.equal(await ask(gateway, "/", "X-Forwarded-Host: A.test"), "200 hit answer 2");
});

test("cache: a stranger's word on a request reaches no upstream, so it cannot poison what others get", async () => {
  await using origin = await startOrigin({
    handler: (request, response) => void response.end(JSON.stringify(request.headers)),
  });
  await using gateway = await startGateway(documentFor(origin, { ttl_secs: 10 }));
  for (const name of [
    "X-Forwarded-Prefix",
    "X-Original-URL",
    "X-HTTP-Method-Override",
    "X-Forwarded-Scheme",
    "X-Host",
  ]) {
    const path = `/${name}`;
    assert.doesNotMatch((await gateway.send({ path, fields: [`${name}: evil`] })).body.toString(), /evil/);
    const second = await gateway.send({ path });
    assert.equal(second.header("x-cache"), "hit");
  }
});

test("cache: key: whatever else a trusted proxy says of a request tells answers apart, not the address of its client", async () => {
  await using origin = await startOrigin({ handler: counting() });
  const document = documentFor(origin, { ttl_secs: 10 });
  await using gateway = await startGateway({
    ...document,
    gateway: { trusted_proxies: ["127.0.0.0/8"], forward_client_headers: ["X-HTTP-Method-Override"] },
  });
  const variants = [[], ["X-Forwarded-Prefix: /a"], ["X-Forwarded-Prefix: /b"], ["X-HTTP-Method-Override: PUT"]];
  for (const outcome of ["miss", "hit"]) {
    for (const [index, fields] of variants.entries()) {
      const all = [...fields, `CF-Connecting-IP: ${outcome}`];
      assert.equal(await ask(gateway, "/", ...all), `200 ${outcome} answer ${index + 1}`, fields.join());
    }
  }
});

/** An origin whose answers wait until the test lets them go. */
async function held(): Promise<Origin & { readonly open: ((body: string, status?: number) => void)[] }> {
  const open: ((body: string, status?: number) => void)[] = [];
  const origin = await startOrigin({
    handler: (_request, response) => void open.push((body, status = 200) => void response.writeHead(status).end(body)),
  });
  return Object.assign(origin, { open });
}

test("cache: coalescing: one request asks, the others wait for its answer", async () => {
  await using origin = await held();
  await using gateway = await startGateway(documentFor(origin, { ttl_secs: 10, coalescing: {} }));
  const responses = Array.from({ length: 20 }, async () => await ask(gateway));
  await waitUntil(async () =>
    (await gateway.send({ path: "/metrics" })).body.toString().includes("active_requests 21"),
  );
  assert.equal(origin.open.length, 1);
  origin.open[0]?.("one");
  const outcomes = await Promise.all(responses);
  assert.deepEqual(outcomes.toSorted(), [...Array.from({ length: 19 }, () => "200 hit one"), "200 miss one"]);
  assert.equal(origin.requests.length, 1);
});

test("cache: coalescing: when the answer cannot be kept, those who waited ask themselves, all at once", async () => {
  await using origin = await held();
  await using gateway = await startGateway(documentFor(origin, { ttl_secs: 10, coalescing: {} }));
  const responses = Array.from({ length: 3 }, async () => await ask(gateway));
  await waitUntil(async () => (await gateway.send({ path: "/metrics" })).body.toString().includes("active_requests 4"));
  origin.open[0]?.("no", 500);
  await waitUntil(() => origin.open.length === 3);
  origin.open[1]?.("b");
  origin.open[2]?.("c");
  assert.deepEqual((await Promise.all(responses)).toSorted(), ["200 miss b", "200 miss c", "500 miss no"]);
});

test("cache: coalescing: wait_ms bounds the wait; without the block no request waits", async () => {
  for (const coalescing of [{ wait_ms: 20 }, undefined]) {
    await using origin = await held();
    await using gateway = await startGateway(
      documentFor(origin, { ttl_secs: 10, ...(coalescing === undefined ? {} : { coalescing }) }),
    );
    const responses = [ask(gateway), ask(gateway)];
    await waitUntil(() => origin.open.length === 2);
    for (const open of origin.open) open("x");
    assert.deepEqual(await Promise.all(responses), ["200 miss x", "200 miss x"]);
  }
});

test("cache: stale_while_revalidate_secs: the old answer at once, one request behind it for a new one", async () => {
  await using origin = await held();
  const clock = new FakeClock();
  const observed = documentFor(origin, { ttl_secs: 10, stale_while_revalidate_secs: 20 });
  await using gateway = await startGateway(observed, { clock });
  const first = ask(gateway);
  await waitUntil(() => origin.open.length === 1);
  origin.open[0]?.("old");
  await first;
  await clock.advance(10_000);
  assert.deepEqual([await ask(gateway), await ask(gateway)], ["200 stale old", "200 stale old"]);
  await waitUntil(() => origin.open.length === 2);
  assert.equal(await ask(gateway), "200 stale old", "while it is under way");
  origin.open[1]?.("new");
  await waitUntil(async () => (await ask(gateway)) === "200 hit new");
  assert.equal(origin.requests.length, 2);
  const access = gateway.log.filter(({ msg }) => msg === "access");
  assert.ok(
    access.every((line) => line["status"] === 200) && access.length >= 5,
    "a refresh is no request of a client",
  );
  await clock.advance(30_000);
  const late = ask(gateway);
  await waitUntil(() => origin.open.length === 3);
  origin.open[2]?.("newest");
  assert.equal(await late, "200 miss newest", "too old even for that");
});

test("cache: what its upstream forbids to be given stale is asked for again (RFC 9111, 4.2.4)", async () => {
  for (const directive of ["must-revalidate, max-age=1", "Proxy-Revalidate", "s-maxage=1"]) {
    await using origin = await startOrigin({
      handler: (_request, response) => {
        response.setHeader("cache-control", directive);
        response.end("x");
      },
    });
    const clock = new FakeClock();
    const document = documentFor(origin, { ttl_secs: 10, stale_while_revalidate_secs: 20 });
    await using gateway = await startGateway(document, { clock });
    assert.deepEqual([await ask(gateway), await ask(gateway)], ["200 miss x", "200 hit x"], directive);
    await clock.advance(10_000);
    assert.equal(await ask(gateway), "200 miss x", directive);
  }
});

test("cache: a refresh has the client's other fields, not its conditions; x-cache revalidated once when 304 says the old answer is good", async () => {
  let status = 200;
  await using origin = await startOrigin({
    handler: (request, response) => {
      const isSame = request.headers["if-none-match"] === '"kept"';
      response.writeHead(isSame ? 304 : status, {
        ETag: '"kept"',
        "X-Round": "1",
        "X-State": isSame ? "later" : "soon",
      });
      response.end(isSame ? "" : "the body");
    },
  });
  const clock = new FakeClock();
  const document = documentFor(origin, { ttl_secs: 1, stale_while_revalidate_secs: 9 });
  await using gateway = await startGateway(document, { clock });
  await ask(gateway);
  status = 500;
  await clock.advance(1000);
  const stale = await gateway.send({ path: "/", fields: ['If-None-Match: "mine"', "X-Own: mine"] });
  assert.deepEqual([said(stale), stale.header("x-state")], ["200 stale the body", "soon"]);
  await waitUntil(() => origin.requests.length === 2);
  const sent = origin.requests[1]?.rawHeaders ?? [];
  const value = (name: string): string[] =>
    sent.filter((_text, at) => at % 2 === 1 && sent[at - 1]?.toLowerCase() === name);
  assert.deepEqual([value("if-none-match"), value("x-own")], [['"kept"'], ["mine"]]);
  let next = stale;
  await waitUntil(async () => (next = await gateway.send({ path: "/" })).header("x-cache") !== "stale");
  assert.deepEqual(
    [said(next), next.header("x-state"), next.header("x-round")],
    ["200 revalidated the body", "later", "1"],
  );
  assert.equal(await ask(gateway), "200 hit the body");
  assert.equal(origin.requests.length, 2);
});

test("cache: while the upstream has trouble the old answer stays, and the upstream is asked once a second; when it is gone there, it goes here", async () => {
  await using origin = await held();
  const clock = new FakeClock();
  await using gateway = await startGateway(documentFor(origin, { ttl_secs: 10, stale_while_revalidate_secs: 100 }), {
    clock,
  });
  const first = ask(gateway);
  await waitUntil(() => origin.open.length === 1);
  origin.open[0]?.("old");
  await first;
  await clock.advance(10_000);
  await ask(gateway);
  await waitUntil(() => origin.open.length === 2);
  origin.open[1]?.("trouble", 500);
  const idle = async (): Promise<boolean> =>
    (await gateway.send({ path: "/metrics" })).body.toString().includes('status_class="5xx"} 1');
  await waitUntil(idle);
  assert.deepEqual([await ask(gateway), await ask(gateway), origin.open.length], ["200 stale old", "200 stale old", 2]);
  await clock.advance(1000);
  assert.equal(await ask(gateway), "200 stale old");
  await waitUntil(() => origin.open.length === 3);
  origin.open[2]?.("gone", 404);
  await waitUntil(async () =>
    (await gateway.send({ path: "/metrics" })).body.toString().includes('status_class="4xx"} 1'),
  );
  const next = ask(gateway);
  await waitUntil(() => origin.open.length === 4);
  origin.open[3]?.("back");
  assert.equal(await next, "200 miss back");
});

test("cache: a reload keeps what routes have kept, unless the route or what is behind it changed", async () => {
  await using origin = await startOrigin({ handler: counting() });
  await using other = await startOrigin({ handler: counting({ "X-Other": "yes" }) });
  const document = documentFor(origin, { ttl_secs: 10 });
  await using gateway = await startGateway(document);
  await ask(gateway);
  await gateway.reload({ ...document, allow_empty_routes: true });
  assert.equal(await ask(gateway), "200 hit answer 1");
  await gateway.reload(documentFor(other, { ttl_secs: 10 }));
  assert.equal(await ask(gateway), "200 miss answer 1");
  await gateway.reload(documentFor(other, { ttl_secs: 11 }));
  assert.equal(await ask(gateway), "200 miss answer 2");
});

test("cache: kept answers are decorated and compressed for each client anew", async () => {
  await using origin = await startOrigin({
    handler: (_request, response) =>
      void response
        .writeHead(200, { "Content-Type": "text/plain", "Access-Control-Allow-Origin": "*" })
        .end("x".repeat(5000)),
  });
  await using gateway = await startGateway(
    documentFor(
      origin,
      { ttl_secs: 10 },
      {
        cors: { allowed_origins: ["https://a.test", "https://b.test"] },
        compression: { algorithms: ["gzip"] },
      },
    ),
  );
  for (const [origins, outcome] of [
    ["https://a.test", "miss"],
    ["https://b.test", "hit"],
  ] as const) {
    const response = await gateway.send({ path: "/", fields: [`Origin: ${origins}`, "Accept-Encoding: gzip"] });
    const allowed = response.headers.filter(([name]) => /^access-control-allow-origin$/i.test(name));
    assert.deepEqual(
      [
        response.header("x-cache"),
        allowed.map(([, value]) => value),
        response.header("content-encoding"),
        response.header("vary"),
      ],
      [outcome, [origins], "gzip", "Accept-Encoding, Origin"],
    );
  }
  assert.equal((await gateway.send({ path: "/" })).body.length, 5000);
});

test("cache: a purge means what is on its way as well", async () => {
  const slice = createCache({ clock: new FakeClock() });
  const route = routeWith("r", { path: { type: "prefix", value: "/" } }, { cache: { ttl_secs: 10 } });
  const compiled = slice.compile?.(documentOf([route]), compileScope());
  const store = compiled?.responseStoreFor?.(route);
  compiled?.published?.();
  const request = requestFor();
  request.route = compiledRoute(route, 0);
  const store1 = (purges: boolean): unknown => {
    assert.equal(store?.lookup(request), "miss");
    if (purges) slice.purge("r");
    const capture = store?.capture(request, { status: 200, reason: "", fields: [] }, lengthFraming(1));
    assert.ok(capture !== undefined && "end" in capture);
    capture.data(Buffer.from("x"));
    capture.end();
    return store?.lookup(request);
  };
  assert.equal(store1(true), "miss");
  assert.equal(typeof store1(false), "object");
  assert.deepEqual(slice.counts().entries, 1);
  slice.purgeAll();
  assert.deepEqual([slice.counts().entries, slice.counts().bytes, store?.lookup(request)], [0, 0, "miss"]);
});

test("cache: a validation that brings no response is a miss, and leaves what is stored", async () => {
  let isUp = true;
  await using origin = await startOrigin({
    handler: (request, response) => {
      if (!isUp) return void request.socket.destroy();
      response.writeHead(200, { "Cache-Control": "max-age=5", ETag: '"1"' }).end("x");
    },
  });
  const clock = new FakeClock();
  await using gateway = await startGateway(documentFor(origin, { ttl_secs: 10 }), { clock });
  assert.equal(await ask(gateway), "200 miss x");
  await clock.advance(6000);
  isUp = false;
  const failed = await gateway.send({ path: "/" });
  assert.deepEqual([failed.status, failed.header("x-cache")], [502, "miss"]);
  const stale = await gateway.send({ path: "/", fields: ["Cache-Control: max-stale"] });
  assert.equal(said(stale), "200 stale x");
  const metrics = (await gateway.send({ path: "/metrics" })).body.toString();
  assert.match(metrics, /gateway_cache_lookups_total\{[^}]*outcome="miss"[^}]*\} 2/);
});

test("cache: requests that wait for the validation of another one use its outcome", async () => {
  const held: ServerResponse[] = [];
  await using origin = await startOrigin({
    handler: (request, response) => {
      if (request.headers["if-none-match"] !== undefined) return void held.push(response);
      response.writeHead(200, { "Cache-Control": "max-age=5", ETag: '"1"' }).end("x");
    },
  });
  const clock = new FakeClock();
  await using gateway = await startGateway(documentFor(origin, { ttl_secs: 10, coalescing: {} }), { clock });
  assert.equal(await ask(gateway), "200 miss x");
  await clock.advance(6000);
  const responses = Array.from({ length: 5 }, async () => await ask(gateway));
  await waitUntil(async () => (await gateway.send({ path: "/metrics" })).body.toString().includes("active_requests 6"));
  assert.equal(held.length, 1);
  held[0]?.writeHead(304, { "Cache-Control": "max-age=5" }).end();
  assert.deepEqual((await Promise.all(responses)).toSorted(), [
    ...Array.from({ length: 4 }, () => "200 hit x"),
    "200 revalidated x",
  ]);
});
