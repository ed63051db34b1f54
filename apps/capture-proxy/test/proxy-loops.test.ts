import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { test } from "node:test";
import { proxyClient, rawClient, startOrigin, waitUntil } from "@headworks/testkit";
import type { RawConnection } from "@headworks/testkit";
import type { ExchangeView } from "#exchange/exchange.ts";
import type { TrafficPolicy } from "#connection/proxy-services.ts";
import { startEngine } from "./engine-harness.ts";
import type { Engine } from "./engine-harness.ts";
import { clientOf, http2Engine, startVersioned, valuesOf } from "./http2-rig.ts";
import { startHttpProxy } from "./proxy-peer.ts";
import { startSignpost } from "./signpost.ts";

interface Circle extends AsyncDisposable {
  readonly engines: readonly Engine[];
  readonly first: Engine;
}

/** So many proxies, each of which names the next as its upstream proxy, and the last the first. */
async function startLoop(size: number, policy: Partial<TrafficPolicy> = {}): Promise<Circle> {
  const signpost = await startSignpost();
  const engines: Engine[] = [];
  let nextPort = signpost.port;
  for (let at = 0; at < size; at += 1) {
    const upstreamProxy = { protocol: "http", host: "127.0.0.1", port: nextPort } as const;
    const engine = await startEngine({ policy, upstreamProxy, insecureHosts: ["origin.test"] });
    engines.unshift(engine);
    nextPort = engine.port;
  }
  signpost.target = nextPort;
  const [first] = engines;
  assert.ok(first);
  return {
    engines,
    first,
    [Symbol.asyncDispose]: async () => {
      await Promise.all(engines.map((engine) => engine.stop()));
      await signpost[Symbol.asyncDispose]();
    },
  };
}

const isLoop = ({ state }: ExchangeView): boolean => state.step === "failed" && state.failure.code === "LOOP";

/** Gives the status that a client of the first proxy gets to hear. */
type Ask = (first: Engine) => Promise<number>;

const headOf = async (client: RawConnection): Promise<string> =>
  (await client.readUntil("\r\n\r\n")).toString("latin1");
const statusIn = (head: string): number => Number(/^HTTP\/1\.1 (\d{3}) /.exec(head)?.[1] ?? 0);

const throughTunnel =
  (bytes: string): Ask =>
  async ({ port }) => {
    await using client = await rawClient(port);
    await client.write(`CONNECT origin.test:80 HTTP/1.1\r\nHost: origin.test:80\r\n\r\n${bytes}`);
    assert.equal(statusIn(await headOf(client)), 200);
    return statusIn(await headOf(client));
  };

const GET = "GET /x HTTP/1.1\r\nHost: origin.test\r\nConnection: close\r\n\r\n";
const UPGRADE = "GET /x HTTP/1.1\r\nHost: origin.test\r\nConnection: upgrade\r\nUpgrade: x-echo\r\n\r\n";

const WAYS: readonly [name: string, ask: Ask, policy?: Partial<TrafficPolicy>][] = [
  ["a plain request", async ({ port }) => (await proxyClient(port).fetch("http://origin.test/x")).status],
  [
    "a plain request with a body",
    async ({ port }) =>
      (await proxyClient(port).fetch({ method: "POST", url: "http://origin.test/x", body: "some text" })).status,
  ],
  [
    "a request over HTTPS that each of them reads",
    async ({ port, ca }) =>
      (await proxyClient(port, { ca: [ca.certificatePem] }).fetch("https://origin.test/x")).status,
  ],
  [
    "a tunnel that none of them reads",
    async ({ port }) => {
      const { response, connection } = await proxyClient(port).tunnel("origin.test:443");
      connection.destroy();
      return response.status;
    },
    { interceptsTls: false },
  ],
  ["a plain request in a tunnel", throughTunnel(GET)],
  ["an upgrade in a tunnel", throughTunnel(UPGRADE)],
  [
    "an upgrade",
    async ({ port }) => {
      await using client = await rawClient(port);
      await client.write(UPGRADE.replace("/x", "http://origin.test/x"));
      return statusIn(await headOf(client));
    },
  ],
  [
    "a request for https in absolute form",
    async ({ port }) => {
      await using client = await rawClient(port);
      await client.write(GET.replace("/x", "https://origin.test/x"));
      return statusIn(await headOf(client));
    },
  ],
];

for (const size of [2, 3]) {
  for (const [name, ask, policy] of WAYS) {
    test(`${name} that goes round a circle of ${size} is noticed by whom it comes back to, and goes no further`, async () => {
      await using loop = await startLoop(size, policy);
      const { engines, first } = loop;
      assert.equal(await ask(first), 508);
      await first.waitFor(2);
      await waitUntil(() => engines.every(({ services }) => services.gauges.activeExchanges === 0));
      const counts = engines.map(({ finished }) => finished.length);
      assert.deepEqual(counts, [2, ...engines.slice(1).map(() => 1)]);
      assert.ok(first.finished.some(isLoop), "an entry of the first one says why");
      await waitUntil(
        () => engines.every(({ services: { gauges } }) => gauges.activeConnections + gauges.upstreamConnections === 0),
        { what: "all connections closing" },
      );
    });
  }
}

test("a tunnel whose client says nothing does not go round either", async () => {
  await using loop = await startLoop(2);
  const { response, connection } = await proxyClient(loop.first.port).tunnel("origin.test:25");
  assert.equal(response.status, 200);
  const [exchange] = await loop.first.waitFor(1);
  assert.ok(exchange !== undefined && isLoop(exchange));
  connection.destroy();
  await waitUntil(() => loop.engines.every(({ services }) => services.gauges.activeConnections === 0));
});

test("by prior knowledge of HTTP/2, a request that comes back is noticed too", async () => {
  await using loop = await startLoop(2);
  const session = connectHttp2(`http://127.0.0.1:${loop.first.port}`);
  session.on("error", () => undefined);
  const stream = session.request({ ":authority": "origin.test", ":path": "/x", ":method": "POST" });
  stream.end("some text");
  const [{ ":status": status }] = (await once(stream, "response")) as [{ ":status": number }];
  assert.equal(status, 508);
  session.destroy();
  const back = await loop.first.waitFor(2);
  assert.ok(back.some(isLoop));
  const looped = connectHttp2(`http://127.0.0.1:${loop.first.port}`);
  looped.on("error", () => undefined);
  const { viaPseudonym } = loop.first.services.dialer;
  const again = looped.request({ ":authority": "origin.test", ":path": "/y", via: `1.1 a, 1.1 ${viaPseudonym}` });
  const [response] = (await once(again, "response")) as [{ ":status": number }];
  assert.equal(response[":status"], 508);
  looped.destroy();
});

test("a proxy that says of a tunnel that it leads round in a circle is believed", async () => {
  const proxy = await startHttpProxy({ response: () => "HTTP/1.1 508 Loop Detected\r\nContent-Length: 0\r\n\r\n" });
  const upstreamProxy = { protocol: "http", host: "127.0.0.1", port: proxy.port } as const;
  const engine = await startEngine({ upstreamProxy, policy: { interceptsTls: false } });
  const { response, connection } = await proxyClient(engine.port).tunnel("origin.test:443");
  connection.destroy();
  assert.equal(response.status, 508);
  const [exchange] = await engine.waitFor(1);
  assert.ok(exchange?.state.step === "failed");
  assert.deepEqual([exchange.state.failure.code, exchange.state.failure.side], ["LOOP", "upstream"]);
  await engine.stop();
  await proxy.close();
});

const OURS = "1.1 h0123456789abcdef";

test("an upstream proxy gets the client's Via as it is and one name behind it; entries show what the client sent", async () => {
  const proxy = await startHttpProxy({ response: () => "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n" });
  const upstreamProxy = { protocol: "http", host: "127.0.0.1", port: proxy.port } as const;
  const engine = await startEngine({ upstreamProxy });
  const own = `1.1 ${engine.services.dialer.viaPseudonym}`;
  const vias = (): string[] =>
    [...(proxy.asked.at(-1) ?? "").matchAll(/^via: (.*)\r$/gim)].map(([, value = ""]) => value);
  const client = proxyClient(engine.port);
  await client.fetch("http://origin.test/");
  assert.deepEqual(vias(), [own]);
  await client.fetch({
    url: "http://origin.test/",
    headers: [
      ["VIA", "1.0 fred (a, b)"],
      ["via", OURS],
    ],
  });
  assert.deepEqual(vias(), ["1.0 fred (a, b)", OURS, own]);
  const [plain, named] = await engine.waitFor(2);
  assert.deepEqual(valuesOf(plain?.request.fields ?? [], "via"), []);
  assert.deepEqual(valuesOf(named?.request.fields ?? [], "via"), ["1.0 fred (a, b)", OURS]);
  // Of CONNECT, a tunnel of one's own is told everything, and a request inside only who could come back.
  const connected = proxyClient(engine.port, { proxyHeaders: [["Via", `1.0 fred, ${OURS}`]] });
  const { connection } = await connected.tunnel("origin.test:80");
  await connection.write(GET);
  await connection.collect();
  assert.match(proxy.asked.at(-1) ?? "", /^GET http:\/\/origin\.test\/x /);
  assert.deepEqual(vias(), [`${OURS}, ${own}`]);
  const upgraded = await connected.tunnel("origin.test:80");
  await upgraded.connection.write(UPGRADE);
  await upgraded.connection.readUntil("\r\n\r\n");
  upgraded.connection.destroy();
  assert.match(proxy.asked.at(-1) ?? "", /^CONNECT origin\.test:80 /);
  assert.deepEqual(vias(), [`1.0 fred, ${OURS}`, own]);
  await engine.stop();
  await proxy.close();
});

test("the origin at the end of a chain sees the Via of its client and nobody else's", async () => {
  await using origin = await startOrigin({ handler: (_, response) => response.end("here") });
  const last = await startEngine();
  const upstreamProxy = { protocol: "http", host: "127.0.0.1", port: last.port } as const;
  const middle = await startEngine({ upstreamProxy });
  const first = await startEngine({ upstreamProxy: { ...upstreamProxy, port: middle.port } });
  const seen = (): readonly string[] => valuesOf(origin.requests.at(-1)?.rawHeaders ?? [], "via");
  const url = `http://localhost:${origin.port}/`;
  await proxyClient(first.port).fetch(url);
  assert.deepEqual(seen(), []);
  await proxyClient(first.port).fetch({ url, headers: [["Via", "1.0 fred"]] });
  assert.deepEqual(seen(), ["1.0 fred"]);
  const [arrived] = await last.waitFor(1);
  const viaPseudonyms = [first, middle].map(({ services }) => `1.1 ${services.dialer.viaPseudonym}`);
  assert.deepEqual(valuesOf(arrived?.request.fields ?? [], "via"), viaPseudonyms);
  for (const engine of [first, middle, last]) await engine.stop();
});

for (const version of ["1.1", "2"] as const) {
  test(`an origin over HTTP/${version} sees no name that another process of ours has added`, async () => {
    await using server = await startVersioned(version, () => ({ body: "here" }));
    await using proxy = await http2Engine();
    await using client = await clientOf("2", proxy, server.port);
    await client.fetch({ fields: [["via", `1.0 fred, ${OURS}`]] });
    await client.fetch({ fields: [["via", OURS]] });
    assert.deepEqual(
      server.seen.map(({ fields }) => valuesOf(fields, "via")),
      [["1.0 fred"], []],
    );
  });
}
