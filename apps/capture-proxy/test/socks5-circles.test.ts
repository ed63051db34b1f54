import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { after, test } from "node:test";
import { METHOD } from "@headworks/socks5";
import { proxyClient, rawClient, startOrigin, waitUntil } from "@headworks/testkit";
import type { ExchangeView } from "#exchange/exchange.ts";
import type { EngineOptions } from "./engine-harness.ts";
import { startSocksEngine } from "./socks-engine.ts";
import type { SocksEngine } from "./socks-engine.ts";
import { startSignpost } from "./signpost.ts";
import { startSocksProxy } from "./proxy-peer.ts";

const cleanups: (() => unknown)[] = [];
after(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup();
});

/** Connections of a circle before it is asked about, and those that come while it is. */
const MAX_ENTRIES = 64 + 32;

type Step = "http" | "socks5";

async function startMember(options: EngineOptions): Promise<SocksEngine> {
  const member = await startSocksEngine(options);
  cleanups.push(() => member.stop());
  return member;
}

/** Proxies of which each reaches the next by its step, and the last the first. */
async function startLoop(steps: readonly Step[]): Promise<SocksEngine[]> {
  const signpost = await startSignpost();
  cleanups.push(async () => await signpost[Symbol.asyncDispose]());
  const members: SocksEngine[] = [];
  let port = signpost.port;
  for (const protocol of steps.toReversed()) {
    const before = steps[steps.length - members.length - 2] ?? steps.at(-1);
    const upstreamProxy = { protocol, host: "127.0.0.1", port } as const;
    const member = await startMember({ upstreamProxy, insecureHosts: ["origin.test"] });
    members.unshift(member);
    port = before === "socks5" ? member.socksPort : member.port;
  }
  signpost.target = port;
  return members;
}

const isLoop = ({ state }: ExchangeView): boolean => state.step === "failed" && state.failure.code === "LOOP";

async function replyOf(member: SocksEngine, host: string, port: number): Promise<number> {
  await using client = await rawClient(member.socksPort);
  await client.write(Buffer.from([5, 1, METHOD.none]));
  await client.read(2);
  const name = Buffer.from(host);
  await client.write(
    Buffer.concat([Buffer.from([5, 1, 0, 3, name.length]), name, Buffer.from([port >> 8, port & 255])]),
  );
  return (await client.read(10))[1] ?? -1;
}

async function allQuiet(members: readonly SocksEngine[]): Promise<void> {
  const busy = (): number =>
    members.reduce((sum, { services: { gauges } }) => sum + gauges.activeConnections + gauges.upstreamConnections, 0);
  await waitUntil(() => busy() === 0, { what: "all connections closing" });
}

for (const steps of [
  ["socks5", "socks5"],
  ["socks5", "socks5", "socks5"],
  ["socks5", "http"],
  ["http", "socks5"],
] as const) {
  const name = steps.join(", ");
  test(`a circle by ${name}: plain requests end with 508, and the proxies go on`, async () => {
    const members = await startLoop(steps);
    const [first] = members;
    assert.ok(first);
    const { status } = await proxyClient(first.port).fetch("http://origin.test/x");
    assert.equal(status, 508);
    await allQuiet(members);
    for (const { finished } of members) assert.ok(finished.length <= MAX_ENTRIES, String(finished.length));
    assert.ok(
      members.some(({ finished }) => finished.some(isLoop)),
      "an entry says why",
    );
    const before = first.finished.length;
    assert.equal((await proxyClient(first.port).fetch("http://origin.test/y")).status, 508);
    await allQuiet(members);
    assert.ok(first.finished.length - before <= MAX_ENTRIES);
  });
}

test("a circle by socks5: its clients are told that it is not allowed, reply 2", async () => {
  const members = await startLoop(["socks5", "socks5"]);
  const [first] = members;
  assert.ok(first);
  assert.equal(await replyOf(first, "origin.test", 25), 2);
  await allQuiet(members);
  for (const { finished } of members) assert.ok(finished.length <= MAX_ENTRIES, String(finished.length));
});

test("a crowd that goes to one place by way of a proxy is no circle: all of it arrives, and the proxy is asked once", async () => {
  const crowd = 150;
  const waiting: ServerResponse[] = [];
  await using origin = await startOrigin({
    handler: (_, response) => {
      if (waiting.push(response) === crowd) for (const each of waiting.splice(0)) each.end("here");
    },
  });
  const proxy = await startSocksProxy({
    resolve: (host) => ({ host: "127.0.0.1", port: host === "origin.test" ? origin.port : 1 }),
  });
  cleanups.push(async () => await proxy.close());
  const member = await startMember({ upstreamProxy: { protocol: "socks5", host: "127.0.0.1", port: proxy.port } });
  for (const round of [1, 2]) {
    const clients = Array.from({ length: crowd }, () => proxyClient(member.port));
    const responses = await Promise.all(
      clients.map(async (client) => await client.fetch(`http://origin.test/${round}`)),
    );
    assert.deepEqual(new Set(responses.map(({ status }) => status)), new Set([200]));
  }
  const others = proxy.asked.filter((place) => place !== "origin.test:80");
  assert.deepEqual(others, [`${member.services.dialer.viaPseudonym}.invalid:80`]);
});
