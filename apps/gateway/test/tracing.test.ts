import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fieldValue } from "@headworks/http1";
import { startOrigin, startRawServer, waitUntil, type Origin } from "@headworks/testkit";
import type { DocumentInput } from "@headworks/gateway-contract";
import { serving, startGateway, type TestGateway } from "./gateway-rig.ts";
import { proxied, responding } from "./route-documents.ts";

/** A span as a receiver reads it. */
interface SeenSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly traceState?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly status?: { readonly code: number };
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
}

/** What a receiver of OTLP got, and what it says to it. */
interface Receiver extends AsyncDisposable {
  readonly url: string;
  readonly origin: Origin;
  /** Bodies as they came, parsed. */
  readonly batches: readonly (readonly SeenSpan[])[];
  readonly resources: readonly Readonly<Record<string, unknown>>[];
  readonly spans: readonly SeenSpan[];
  /** All spans of so many, once they are there. */
  got(count: number): Promise<readonly SeenSpan[]>;
}

type Attribute = { readonly key: string; readonly value: Readonly<Record<string, string | number | boolean>> };
type Reply = readonly [status: number, body?: string, fields?: Readonly<Record<string, string>>];

const attributesOf = (list: readonly Attribute[]): Record<string, string | number | boolean> =>
  Object.fromEntries(
    list.map(({ key, value }) => {
      const [[kind, plain]] = Object.entries(value) as [[string, string | number | boolean]];
      return [key, kind === "intValue" ? Number(plain) : plain];
    }),
  );

async function startReceiver(reply: (batch: number) => Reply | undefined = () => [200, "{}"]): Promise<Receiver> {
  const batches: SeenSpan[][] = [];
  const resources: Record<string, unknown>[] = [];
  const origin = await startOrigin({
    handler: (request, response) => {
      let text = "";
      request.setEncoding("utf8").on("data", (piece: string) => (text += piece));
      request.on("end", () => {
        const { resourceSpans } = JSON.parse(text) as {
          resourceSpans: {
            resource: { attributes: Attribute[] };
            scopeSpans: { spans: (Omit<SeenSpan, "attributes"> & { attributes: Attribute[] })[] }[];
          }[];
        };
        for (const { resource, scopeSpans } of resourceSpans) {
          resources.push(attributesOf(resource.attributes));
          for (const { spans } of scopeSpans) {
            batches.push(spans.map((span) => ({ ...span, attributes: attributesOf(span.attributes) })));
          }
        }
        const given = reply(batches.length);
        if (given === undefined) return;
        response.writeHead(given[0], { "Content-Type": "application/json", ...given[2] }).end(given[1]);
      });
    },
  });
  return {
    url: `${origin.url}/v1/traces`,
    origin,
    batches,
    resources,
    get spans() {
      return batches.flat();
    },
    got: async (count) => {
      await waitUntil(() => batches.flat().length >= count, { what: `${count} spans` });
      return batches.flat();
    },
    [Symbol.asyncDispose]: async () => await origin[Symbol.asyncDispose](),
  };
}

type Traces = NonNullable<NonNullable<DocumentInput["analytics"]>["traces"]>;

const traced = (
  receiver: Pick<Receiver, "url">,
  ports: readonly number[],
  more: Partial<DocumentInput> = {},
  traces: Partial<Traces> = {},
): DocumentInput => ({
  ...serving("api", ports),
  routes: [proxied("api", "/api")],
  analytics: { traces: { url: receiver.url, flush_ms: 100, ...traces } },
  ...more,
});

const parentAt = (origin: Origin, at = 0): string | undefined =>
  fieldValue([...(origin.requests[at]?.rawHeaders ?? [])], "traceparent");

async function counted(gateway: TestGateway, outcome: string): Promise<number> {
  const { body } = await gateway.send({ path: "/metrics" });
  return Number(
    new RegExp(`^gateway_trace_spans_total\\{outcome="${outcome}"\\} (\\d+)$`, "m").exec(body.toString())?.[1],
  );
}

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const SPAN = "b7ad6b7169203331";

test("traces: a request is a server span, its attempt a client span below it, and the upstream's parent is the attempt", async () => {
  await using origin = await startOrigin({});
  await using receiver = await startReceiver();
  const headers = { "X-Key": "a secret" };
  await using gateway = await startGateway(traced(receiver, [origin.port], {}, { headers }));
  const before = BigInt(Date.now()) * 1_000_000n;
  await gateway.send({ path: "/api/x?token=secret", fields: ["User-Agent: tester", "Host: shop.example:8443"] });
  const all = await receiver.got(2);
  const server = all.find(({ kind }) => kind === 2);
  const client = all.find(({ kind }) => kind === 3);
  assert.ok(server !== undefined && client !== undefined && all.length === 2);
  assert.match(server.traceId, /^[0-9a-f]{32}$/);
  assert.deepEqual(
    [server.parentSpanId, client.traceId, client.parentSpanId],
    [undefined, server.traceId, server.spanId],
  );
  assert.equal(parentAt(origin), `00-${client.traceId}-${client.spanId}-01`);
  assert.deepEqual([server.name, client.name], ["GET /api", "GET"]);
  const { "gateway.request_id": requestId, ...own } = server.attributes;
  assert.match(String(requestId), /^req-/);
  assert.deepEqual(own, {
    "http.request.method": "GET",
    "url.path": "/api/x",
    "url.scheme": "http",
    "server.address": "shop.example",
    "server.port": 8443,
    "client.address": "127.0.0.1",
    "network.peer.address": "127.0.0.1",
    "network.protocol.version": "1.1",
    "user_agent.original": "tester",
    "http.route": "/api",
    "http.response.status_code": 200,
    "gateway.listener": "public",
    "gateway.route": "api",
  });
  assert.deepEqual(client.attributes, {
    "http.request.method": "GET",
    "server.address": "127.0.0.1",
    "server.port": origin.port,
    "url.full": `http://127.0.0.1:${origin.port}/api/x`,
    "http.response.status_code": 200,
    "gateway.upstream": "api",
  });
  const times = [
    server.startTimeUnixNano,
    client.startTimeUnixNano,
    client.endTimeUnixNano,
    server.endTimeUnixNano,
  ].map(BigInt);
  assert.deepEqual(
    times,
    times.toSorted((a, b) => (a < b ? -1 : 1)),
    "the attempt lies within the request",
  );
  // The wall clock and the monotonic one may be apart by what they were set to meanwhile.
  assert.ok((times[0] ?? 0n) > before - 60_000_000_000n && (times[3] ?? 0n) < before + 60_000_000_000n);
  assert.equal(receiver.resources[0]?.["service.name"], "sluice");
  assert.equal(receiver.origin.requests[0]?.url, "/v1/traces");
  const sent = [...(receiver.origin.requests[0]?.rawHeaders ?? [])];
  assert.deepEqual(
    ["content-type", "x-key", "user-agent"].map((name) => fieldValue(sent, name)),
    ["application/json", "a secret", "gateway-traces"],
  );
  assert.equal(await counted(gateway, "exported"), 2);
  assert.equal(gateway.log.find(({ msg }) => msg === "access")?.["trace_id"], server.traceId);
});

test("traces: a request that is part of a trace continues it, state and all; what is no traceparent begins a new one", async () => {
  await using origin = await startOrigin({});
  await using receiver = await startReceiver();
  await using gateway = await startGateway(traced(receiver, [origin.port]));
  await gateway.send({
    path: "/api",
    fields: [`traceparent: 00-${TRACE}-${SPAN}-01`, "tracestate: a=1", "tracestate: b=2"],
  });
  const [client, server] = await receiver.got(2);
  assert.deepEqual([server?.traceId, server?.parentSpanId, server?.traceState], [TRACE, SPAN, "a=1,b=2"]);
  assert.deepEqual([client?.traceId, client?.parentSpanId, client?.traceState], [TRACE, server?.spanId, "a=1,b=2"]);
  assert.equal(parentAt(origin), `00-${TRACE}-${client?.spanId}-01`);
  assert.equal(origin.requests[0]?.rawHeaders.filter((text) => text.toLowerCase() === "tracestate").length, 2);
  await gateway.send({ path: "/api", fields: [`traceparent: 00-${TRACE}-0-01`, "tracestate: a=1"] });
  const later = (await receiver.got(4)).slice(2);
  assert.ok(later.every(({ traceId }) => traceId !== TRACE));
  assert.equal(fieldValue([...(origin.requests[1]?.rawHeaders ?? [])], "tracestate"), undefined);
});

test("traces: what is not sampled goes on as it came and is sent nowhere; sample_ratio is for those that begin one", async () => {
  await using origin = await startOrigin({});
  await using receiver = await startReceiver();
  await using gateway = await startGateway(traced(receiver, [origin.port], {}, { sample_ratio: 0 }));
  const unsampled = `00-${TRACE}-${SPAN}-00`;
  await gateway.send({ path: "/api", fields: [`traceparent: ${unsampled}`] });
  await gateway.send({ path: "/api" });
  await gateway.send({ path: "/api", fields: [`traceparent: 00-${TRACE}-${SPAN}-01`] });
  const spans = await receiver.got(2);
  assert.ok(spans.length === 2 && spans.every(({ traceId }) => traceId === TRACE));
  assert.deepEqual([parentAt(origin, 0), parentAt(origin, 1)], [unsampled, undefined]);
});

test("traces: without the section nothing is added to requests", async () => {
  await using origin = await startOrigin({});
  await using gateway = await startGateway({ ...serving("api", [origin.port]), routes: [proxied("api")] });
  await gateway.send({ path: "/" });
  assert.equal(parentAt(origin), undefined);
});

test("traces: each attempt is a span, with why it failed and which it was", async () => {
  await using broken = await startRawServer(async (connection) => {
    await connection.readUntil("\r\n\r\n");
    connection.socket.resetAndDestroy();
  });
  await using failing = await startOrigin({ handler: (_request, response) => response.writeHead(503).end() });
  await using good = await startOrigin({});
  await using receiver = await startReceiver();
  const retries = { attempts: 2, backoff_base_ms: 1, backoff_cap_ms: 1, budget_percent: 100 };
  await using gateway = await startGateway({
    ...traced(receiver, []),
    ...serving("api", [broken.port, failing.port, good.port], { retries }),
  });
  assert.equal((await gateway.send({ path: "/api" })).status, 200);
  const spans = await receiver.got(4);
  const clients = spans.filter(({ kind }) => kind === 3);
  const facts = clients.map(({ status, attributes }) => [
    attributes["server.port"],
    attributes["http.request.resend_count"],
    attributes["http.response.status_code"],
    attributes["error.type"],
    status?.code,
  ]);
  assert.deepEqual(facts, [
    [broken.port, undefined, undefined, "reset", 2],
    [failing.port, 1, 503, "503", 2],
    [good.port, 2, 200, undefined, undefined],
  ]);
  assert.equal(new Set(clients.map(({ spanId }) => spanId)).size, 3);
  const server = spans.find(({ kind }) => kind === 2);
  assert.deepEqual([server?.status, server?.attributes["error.type"]], [undefined, undefined]);
});

test("traces: failures of the gateway itself are errors with their code, refusals are none, and names stay few", async () => {
  await using receiver = await startReceiver();
  await using gateway = await startGateway({
    ...traced(receiver, [1]),
    routes: [proxied("api", "/api"), responding("own", "/own", { auth_required: true })],
    consumers: [{ name: "one", credentials: [{ type: "api_key", key: "key-of-one" }] }],
  });
  await gateway.send({ path: "/api" });
  await gateway.send({ path: "/own", method: "BREW" });
  await gateway.send({ path: `/none/${"x".repeat(3000)}` });
  await gateway.send({ path: "/own", fields: ["X-API-Key: key-of-one"] });
  const servers = (await receiver.got(5)).filter(({ kind }) => kind === 2);
  assert.deepEqual(
    servers.map(({ name, status, attributes: of }) => [
      name,
      of["http.response.status_code"],
      of["error.type"],
      of["gateway.error_code"],
      of["gateway.consumer"],
      status?.code,
    ]),
    [
      ["GET /api", 502, "upstream_unavailable", "upstream_unavailable", undefined, 2],
      ["_OTHER /own", 401, undefined, "unauthorized", undefined, undefined],
      ["GET", 404, undefined, "no_route", undefined, undefined],
      ["GET /own", 200, undefined, undefined, "one", undefined],
    ],
  );
  assert.equal(servers[1]?.attributes["http.request.method_original"], "BREW");
  assert.equal(String(servers[2]?.attributes["url.path"]).length, 1024);
});

describe("what becomes of spans", { concurrency: 12 }, () => {
  test("traces: spans are sent in batches of at most batch_max, one at a time", async () => {
    await using receiver = await startReceiver();
    await using gateway = await startGateway({
      ...traced(receiver, [1], {}, { batch_max: 4 }),
      routes: [responding("r", "/r")],
    });
    for (let at = 0; at < 10; at += 1) await gateway.send({ path: "/r" });
    await receiver.got(10);
    assert.ok(
      receiver.batches.every((batch) => batch.length <= 4) && receiver.batches.some((batch) => batch.length === 4),
    );
    assert.equal(new Set(receiver.spans.map(({ spanId }) => spanId)).size, 10);
  });

  test("traces: a receiver that does not answer costs spans, never requests; what does not fit is dropped and counted", async () => {
    await using receiver = await startReceiver(() => undefined);
    await using gateway = await startGateway({
      ...traced(receiver, [1], {}, { buffer: 64, batch_max: 10, flush_ms: 60_000, timeout_ms: 60_000 }),
      routes: [responding("r", "/r")],
    });
    for (let at = 0; at < 90; at += 1) assert.equal((await gateway.send({ path: "/r" })).status, 200);
    // Ten are on their way, 64 wait; the scrape is the 91st.
    assert.equal(await counted(gateway, "dropped"), 16);
    assert.equal(await counted(gateway, "exported"), 0);
  });

  test("traces: what is refused is given up, what may be tried again is, and what is thrown away is counted", async () => {
    const replies: Reply[] = [
      [400, "no"],
      [503, "", { "Retry-After": "0" }],
      [200, '{"partialSuccess":{"rejectedSpans":"1","errorMessage":"old"}}'],
      [302, "", { Location: "http://127.0.0.1:1/" }],
      [200, "not json"],
    ];
    await using receiver = await startReceiver((batch) => replies[batch - 1]);
    await using gateway = await startGateway({
      ...traced(receiver, [1], {}, { batch_max: 2, flush_ms: 60_000 }),
      routes: [responding("r", "/r")],
    });
    const pair = async (): Promise<void> => {
      for (let at = 0; at < 2; at += 1) await gateway.send({ path: "/r" });
    };
    await pair();
    await waitUntil(
      async () => receiver.batches.length === 1 && gateway.log.some(({ code }) => code === "trace_export_failed"),
    );
    await pair();
    await waitUntil(() => receiver.batches.length === 3);
    assert.deepEqual(receiver.batches[1], receiver.batches[2], "the same spans once more");
    await pair();
    await waitUntil(() => receiver.batches.length === 4);
    await pair();
    await waitUntil(() => receiver.batches.length === 5);
    await waitUntil(async () => (await counted(gateway, "exported")) >= 3);
    assert.deepEqual([await counted(gateway, "failed"), await counted(gateway, "rejected")], [4, 1]);
    const told = gateway.log.filter(({ code }) => code === "trace_export_failed");
    assert.deepEqual([told.length, told[0]?.["why"]], [1, "status_400"]);
  });

  test("traces: the egress filter decides whether the receiver may be dialled", async () => {
    await using receiver = await startReceiver();
    await using gateway = await startGateway({
      ...traced(receiver, [1], { ssrf_filter: { deny: ["127.0.0.0/8"] } }),
      routes: [responding("r", "/r")],
    });
    await gateway.send({ path: "/r" });
    await waitUntil(async () => (await counted(gateway, "failed")) >= 1);
    assert.equal(receiver.batches.length, 0);
    const { body } = await gateway.send({ path: "/metrics" });
    assert.match(body.toString(), /^gateway_ssrf_denied_total\{purpose="traces"\} [1-9]/m);
  });

  test("traces: a reload with another receiver sends what waits to the old one, one without changes keeps the queue", async () => {
    await using first = await startReceiver();
    await using second = await startReceiver();
    const documentFor = (receiver: Receiver, body: string): DocumentInput => ({
      ...traced(receiver, [1], {}, { flush_ms: 60_000 }),
      routes: [responding("r", "/r", { action: { type: "respond", status: 200, body } })],
    });
    await using gateway = await startGateway(documentFor(first, "one"));
    await gateway.send({ path: "/r" });
    await gateway.reload(documentFor(first, "two"));
    await gateway.send({ path: "/r" });
    assert.equal(first.spans.length, 0, "both wait");
    await gateway.reload(documentFor(second, "two"));
    assert.equal((await first.got(2)).length, 2);
    await gateway.send({ path: "/r" });
    await gateway.gateway.stop(1000);
    assert.equal((await second.got(1)).length, 1, "the end of the process sends the last ones");
  });

  test("traces: what cannot be sent to, or set, is an issue of the document", async () => {
    const section = { url: "ftp://h/", headers: { Host: "x" }, batch_max: 100, buffer: 64 };
    const document = { routes: [responding("r")], analytics: { traces: section } };
    const refused = await startGateway(document as DocumentInput).catch((error: unknown) => error);
    const { issues } = refused as { issues: readonly { code: string; path: string; severity: string }[] };
    assert.deepEqual(
      issues.filter(({ severity }) => severity === "error").map(({ code, path }) => `${code} ${path}`),
      [
        "bad_url /analytics/traces/url",
        "bad_header /analytics/traces/headers/Host",
        "out_of_range /analytics/traces/batch_max",
      ],
    );
  });

  test("GATEWAY_OTLP_ENDPOINT stands in for a document that says nothing, and for none that does", async () => {
    await using standing = await startReceiver();
    await using own = await startReceiver();
    const environment = { GATEWAY_OTLP_ENDPOINT: `${standing.origin.url}/` };
    const plain: DocumentInput = { routes: [responding("r", "/r")] };
    await using gateway = await startGateway(plain, { environment });
    await gateway.send({ path: "/r" });
    assert.equal((await standing.got(1))[0]?.name, "GET /r");
    assert.equal(standing.origin.requests[0]?.url, "/v1/traces");
    await gateway.reload({ ...plain, analytics: { traces: { url: own.url, flush_ms: 100 } } });
    await gateway.send({ path: "/r" });
    await own.got(1);
    assert.equal(standing.spans.length, 1);
  });

  test("GATEWAY_OTLP_ENDPOINT that is no address is told, and the gateway runs without it", async () => {
    const environment = { GATEWAY_OTLP_ENDPOINT: "collector:4318" };
    await using gateway = await startGateway({ routes: [responding("r", "/r")] }, { environment });
    assert.equal((await gateway.send({ path: "/r" })).status, 200);
    assert.ok(gateway.log.some(({ code }) => code === "trace_endpoint_refused"));
  });
});
