import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import { CertificateAuthority } from "@headworks/tls-authority";
import { credentials, startRawServer, waitUntil, type RawConnection, type RawServer } from "@headworks/testkit";
import type { SsrfFilter } from "@headworks/gateway-contract";
import { connectFirst } from "#egress/connect-first.ts";
import { EgressDialer, type DialTarget, systemLookup } from "#egress/egress-dialer.ts";
import { EgressError, type EgressFailureCode } from "#egress/egress-failure.ts";
import { EgressFilter } from "#egress/egress-filter.ts";
import { startDnsServer, type DnsResponse } from "./dns-server.ts";
import { logLines } from "./log-lines.ts";

const LOOPBACK: SsrfFilter = { deny: ["127.0.0.0/8", "::1/128"] };

const quiet = async (): Promise<RawServer> =>
  await startRawServer(async (connection) => void (await connection.collect().catch(() => undefined)));

/** What a dial came to: `connected`, or the code of its failure. */
async function outcomeOf(
  dialer: EgressDialer,
  target: DialTarget,
  signal = AbortSignal.timeout(20_000),
): Promise<"connected" | EgressFailureCode> {
  try {
    const socket = await dialer.dial(target, "webhook", signal);
    socket.destroy();
    return "connected";
  } catch (error) {
    if (error instanceof EgressError) return error.code;
    throw error;
  }
}

const rulesOf = (filter: SsrfFilter | undefined, dnsTimeoutMs = 10_000) => ({
  filter: filter === undefined ? undefined : new EgressFilter(filter),
  dnsTimeoutMs,
});

interface NameCase {
  readonly name: string;
  readonly responses: readonly DnsResponse[];
  readonly filter: SsrfFilter | undefined;
  /** One for each dial in turn. */
  readonly outcomes: readonly ("connected" | EgressFailureCode)[];
  readonly connections: number;
}

const NAMES: readonly NameCase[] = [
  {
    name: "egress rule 1: without a filter private addresses are dialled",
    responses: [["127.0.0.1"]],
    filter: undefined,
    outcomes: ["connected"],
    connections: 1,
  },
  {
    name: "egress rule 2: a name with a denied address is not dialled",
    responses: [["127.0.0.1"]],
    filter: LOOPBACK,
    outcomes: ["ssrf_denied"],
    connections: 0,
  },
  {
    name: "egress rule 2: a name with an allowed address is dialled",
    responses: [["127.0.0.1"]],
    filter: { ...LOOPBACK, allow: ["127.0.0.1"] },
    outcomes: ["connected"],
    connections: 1,
  },
  {
    name: "egress rule 2: every address is checked: one bad one behind a good one denies the name",
    responses: [["127.0.0.1", "10.1.1.1"]],
    filter: { deny: ["10.0.0.0/8"] },
    outcomes: ["ssrf_denied"],
    connections: 0,
  },
  {
    name: "egress rule 2: every address is checked: a bad IPv6 address beside a good IPv4 address denies the name",
    responses: [["127.0.0.1", "::1"]],
    filter: { deny: ["::1/128"] },
    outcomes: ["ssrf_denied"],
    connections: 0,
  },
  {
    name: "egress rule 2: a name that rebinds to a denied address is judged anew at every connection",
    responses: [["127.0.0.1"], ["127.0.0.2"], ["127.0.0.1"]],
    filter: { deny: ["127.0.0.2/32"] },
    outcomes: ["connected", "ssrf_denied", "connected"],
    connections: 2,
  },
  {
    name: "egress rule 2: the address that was checked is the address dialled, although the name has a new one by then",
    responses: [["127.0.0.1"], ["192.0.2.1"]],
    filter: { deny: ["192.0.2.0/24"] },
    outcomes: ["connected"],
    connections: 1,
  },
  {
    name: "egress rule 2: NAT64 of a denied address",
    responses: [["64:ff9b::7f00:1"]],
    filter: LOOPBACK,
    outcomes: ["ssrf_denied"],
    connections: 0,
  },
  {
    name: "egress rule 2: the unspecified address would reach this host",
    responses: [["0.0.0.0"]],
    filter: LOOPBACK,
    outcomes: ["ssrf_denied"],
    connections: 0,
  },
  ...(
    [
      ["a name that does not exist", "nxdomain", "dns_failed"],
      ["a broken name server", "servfail", "dns_failed"],
      ["a name server that talks garbage", "garbage", "dns_failed"],
      ["a name server that is silent", "silence", "dns_timeout"],
      ["a name without addresses", [], "dns_failed"],
    ] as const
  ).map(([what, response, outcome]): NameCase => ({
    name: `egress rule 3: ${what} ends the dial`,
    responses: [response],
    filter: LOOPBACK,
    outcomes: [outcome],
    connections: 0,
  })),
];

for (const { name, responses, filter, outcomes, connections } of NAMES) {
  test(name, async () => {
    await using dns = await startDnsServer();
    await using server = await quiet();
    dns.set("hook.test", ...responses);
    const logged = logLines();
    const dialer = new EgressDialer({ log: logged.log, lookup: dns.lookup });
    const waits = outcomes.includes("dns_timeout");
    dialer.apply(rulesOf(filter, waits ? 150 : 10_000));
    const got: string[] = [];
    const target = { host: "hook.test", port: server.port, isSecure: false };
    for (let dial = 0; dial < outcomes.length; dial += 1) got.push(await outcomeOf(dialer, target));
    assert.deepEqual(got, outcomes);
    await waitUntil(() => server.connections.length >= connections);
    assert.equal(server.connections.length, connections);
    const denials = outcomes.filter((outcome) => outcome === "ssrf_denied").length;
    assert.equal(logged.coded("ssrf_denied").length, denials);
    assert.equal(dialer.denied.get("webhook") ?? 0, denials);
    assert.equal(dns.questions.length, 2 * outcomes.length, "one lookup of both families for each connection");
  });
}

const LITERALS: readonly [host: string, outcome: "connected" | EgressFailureCode][] = [
  ["127.0.0.1", "ssrf_denied"],
  ["::1", "ssrf_denied"],
  ["::ffff:127.0.0.1", "ssrf_denied"],
  ["::ffff:7f00:1", "ssrf_denied"],
  ["0.0.0.0", "ssrf_denied"],
  ["::", "ssrf_denied"],
  ["64:ff9b::7f00:1", "ssrf_denied"],
  ["2002:7f00:1::", "ssrf_denied"],
];
// What the system's lookup reads as an address although it is none in strict form; whatever comes out is judged.
const ODD: readonly string[] = ["127.1", "2130706433", "0x7f.1", "0177.0.0.1", "0x7f000001", "127.0.0.1.", "localhost"];

for (const [host, outcome] of LITERALS) {
  test(`egress rule 2: the literal address ${host} is judged without a lookup`, async () => {
    await using server = await quiet();
    const dialer = new EgressDialer({ log: logLines().log, lookup: () => assert.fail("looked up") });
    dialer.apply(rulesOf(LOOPBACK));
    assert.equal(await outcomeOf(dialer, { host, port: server.port, isSecure: false }), outcome);
    assert.equal(server.connections.length, 0);
  });
}

for (const host of ODD) {
  test(`egress rule 2: the odd spelling ${host} reaches nothing that is denied`, async () => {
    await using server = await quiet();
    const dialer = new EgressDialer({ log: logLines().log });
    dialer.apply(rulesOf(LOOPBACK));
    const outcome = await outcomeOf(dialer, { host, port: server.port, isSecure: false });
    assert.ok(outcome === "ssrf_denied" || outcome === "dns_failed", outcome);
    assert.equal(server.connections.length, 0);
  });
}

test("the system's lookup gives all addresses of a name", async () => {
  assert.ok((await systemLookup("localhost")).some((address) => address === "127.0.0.1" || address === "::1"));
});

test("egress rule 3: a lookup that gives something that is no address ends the dial", async () => {
  await using server = await quiet();
  const dialer = new EgressDialer({ log: logLines().log, lookup: async () => ["127.0.0.1", "localhost"] });
  dialer.apply(rulesOf({ deny: ["10.0.0.0/8"] }));
  assert.equal(await outcomeOf(dialer, { host: "hook.test", port: server.port, isSecure: false }), "filter_failed");
  dialer.apply(rulesOf(undefined));
  const without = new EgressDialer({ log: logLines().log, lookup: async () => ["localhost"] });
  assert.equal(await outcomeOf(without, { host: "hook.test", port: server.port, isSecure: false }), "connect_failed");
  assert.equal(server.connections.length, 0);
});

test("egress rule 3: a filter that breaks ends the dial", async () => {
  await using server = await quiet();
  const logged = logLines();
  const dialer = new EgressDialer({ log: logged.log });
  const filter = new EgressFilter(LOOPBACK);
  filter.judge = () => {
    throw new Error("broken");
  };
  dialer.apply({ filter, dnsTimeoutMs: 1000 });
  assert.equal(await outcomeOf(dialer, { host: "127.0.0.1", port: server.port, isSecure: false }), "filter_failed");
  assert.equal(logged.coded("ssrf_filter_failed").length, 1);
  assert.equal(server.connections.length, 0);
});

test("egress rule 3: failures of the filter and of lookups under it are final; without a filter a lookup may be retried", async () => {
  const isFinal = async (filter: SsrfFilter | undefined, host: string): Promise<boolean> => {
    const dialer = new EgressDialer({ log: logLines().log, lookup: async () => await Promise.reject(new Error("no")) });
    dialer.apply(rulesOf(filter));
    const dialled = dialer.dial({ host, port: 9, isSecure: false }, "webhook", AbortSignal.timeout(5000));
    return await dialled.then(
      () => assert.fail("connected"),
      (error: unknown) => error instanceof EgressError && error.isFinal,
    );
  };
  assert.equal(await isFinal(LOOPBACK, "127.0.0.1"), true);
  assert.equal(await isFinal(LOOPBACK, "hook.test"), true);
  assert.equal(await isFinal(undefined, "hook.test"), false);
});

test("denials are counted one by one and logged once a second for each host", async () => {
  const logged = logLines();
  const dialer = new EgressDialer({ log: logged.log });
  dialer.apply(rulesOf(LOOPBACK));
  for (let dial = 0; dial < 30; dial += 1) await outcomeOf(dialer, { host: "127.0.0.1", port: 9, isSecure: false });
  await outcomeOf(dialer, { host: "::1", port: 9, isSecure: false });
  dialer.apply(rulesOf(LOOPBACK));
  await outcomeOf(dialer, { host: "::1", port: 9, isSecure: false });
  assert.deepEqual(
    logged.coded("ssrf_denied").map((line) => line["host"]),
    ["127.0.0.1", "::1", "::1"],
    "a new generation tells at once",
  );
  assert.equal(dialer.denied.get("webhook"), 32);
});

test("egress rule 4: a new generation's filter judges dials that are still being looked up", async () => {
  await using server = await quiet();
  const found = Promise.withResolvers<readonly string[]>();
  const dialer = new EgressDialer({ log: logLines().log, lookup: async () => await found.promise });
  const outcome = outcomeOf(dialer, { host: "hook.test", port: server.port, isSecure: false });
  dialer.apply(rulesOf(LOOPBACK));
  found.resolve(["127.0.0.1"]);
  assert.equal(await outcome, "ssrf_denied");
  assert.equal(server.connections.length, 0);
});

test("egress rule 5: proxy variables of the environment change nothing", async (t) => {
  await using server = await quiet();
  await using proxy = await quiet();
  for (const name of ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "NODE_USE_ENV_PROXY"]) {
    const before = process.env[name];
    process.env[name] = name === "NODE_USE_ENV_PROXY" ? "1" : `http://127.0.0.1:${proxy.port}`;
    t.after(() => {
      if (before === undefined) delete process.env[name];
      else process.env[name] = before;
    });
  }
  const dialer = new EgressDialer({ log: logLines().log, lookup: async () => ["127.0.0.1"] });
  assert.equal(await outcomeOf(dialer, { host: "hook.test", port: server.port, isSecure: false }), "connected");
  await waitUntil(() => server.connections.length === 1);
  assert.equal(proxy.connections.length, 0);
});

test("names that are looked up already wait for the same answer instead of holding another thread", async () => {
  await using server = await quiet();
  let lookups = 0;
  const found = Promise.withResolvers<readonly string[]>();
  const dialer = new EgressDialer({
    log: logLines().log,
    lookup: async () => {
      lookups += 1;
      return await found.promise;
    },
  });
  const target = { host: "hook.test", port: server.port, isSecure: false };
  const dials = Array.from({ length: 20 }, async () => await outcomeOf(dialer, target));
  found.resolve(["127.0.0.1"]);
  assert.deepEqual(new Set(await Promise.all(dials)), new Set(["connected"]));
  assert.equal(lookups, 1);
  await outcomeOf(dialer, target);
  assert.equal(lookups, 2, "the answer is not kept");
});

test("an aborted dial ends at once and leaves no connection", async () => {
  await using server = await quiet();
  const dialer = new EgressDialer({ log: logLines().log });
  const target = { host: "127.0.0.1", port: server.port, isSecure: false };
  assert.equal(await outcomeOf(dialer, target, AbortSignal.abort()), "timeout");
  await waitUntil(() => server.connections.every(({ ended }) => ended));
});

test("an address that refuses is followed by the next one", async () => {
  await using server = await quiet();
  const gone = await quiet();
  await gone.close();
  const lookup = async (): Promise<string[]> => ["127.0.0.3", "127.0.0.1"];
  // Only 127.0.0.1 has the listener, so the first address refuses.
  const dialer = new EgressDialer({ log: logLines().log, lookup });
  assert.equal(await outcomeOf(dialer, { host: "h.test", port: server.port, isSecure: false }), "connected");
  assert.equal(await outcomeOf(dialer, { host: "h.test", port: gone.port, isSecure: false }), "connect_failed");
});

test("nothing but addresses is ever dialled", async () => {
  await assert.rejects(connectFirst(["localhost"], 9, AbortSignal.timeout(5000)), { code: "connect_failed" });
  await assert.rejects(connectFirst([], 9, AbortSignal.timeout(5000)), { code: "connect_failed" });
});

const authority = CertificateAuthority.create();
const stranger = CertificateAuthority.create();

const TLS: readonly [
  name: string,
  host: string,
  signer: CertificateAuthority,
  dns: string[],
  ip: string[],
  expected: string,
][] = [
  ["a good certificate", "hook.test", authority, ["hook.test"], [], "connected"],
  ["a good certificate, the name with its last dot", "hook.test.", authority, ["hook.test"], [], "connected"],
  ["a certificate for an address", "127.0.0.1", authority, [], ["127.0.0.1"], "connected"],
  ["a certificate for another name", "hook.test", authority, ["other.test"], [], "tls_failed"],
  ["a certificate for the address instead of the name", "hook.test", authority, [], ["127.0.0.1"], "tls_failed"],
  ["a certificate for another address", "127.0.0.1", authority, [], ["127.0.0.9"], "tls_failed"],
  ["egress rule 5: a certificate of a private CA", "hook.test", stranger, ["hook.test"], [], "tls_failed"],
];
for (const [name, host, signer, dns, ip, expected] of TLS) {
  test(`https: ${name}: ${expected}`, async () => {
    await using server = await startRawServer(() => undefined, { tls: credentials(signer, { dns, ip }) });
    const roots = [authority.certificatePem];
    const dialer = new EgressDialer({ log: logLines().log, lookup: async () => ["127.0.0.1"], roots });
    assert.equal(await outcomeOf(dialer, { host, port: server.port, isSecure: true }), expected);
  });
}

test("egress rule 5: the environment cannot add roots or switch verification off", async (t) => {
  await using server = await startRawServer(() => undefined, {
    tls: credentials(stranger, { dns: ["hook.test"], ip: [] }),
  });
  process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = "0";
  t.after(() => delete process.env["NODE_TLS_REJECT_UNAUTHORIZED"]);
  const dialer = new EgressDialer({ log: logLines().log, lookup: async () => ["127.0.0.1"] });
  assert.equal(await outcomeOf(dialer, { host: "hook.test", port: server.port, isSecure: true }), "tls_failed");
});

type Script = (connection: RawConnection) => Promise<void> | void;

const HANDSHAKES: readonly [name: string, script: Script, expected: RegExp][] = [
  ["that never comes", async (connection) => void (await connection.closed), /^timeout$/],
  ["that is hung up", (connection) => connection.destroy(), /^tls_failed$/],
  // The reset may be quicker than our side's notice of the connection.
  ["that is reset", (connection) => connection.reset(), /^(?:tls|connect)_failed$/],
  ["that is plain HTTP", async (connection) => await connection.write("HTTP/1.1 400 No\r\n\r\n"), /^tls_failed$/],
  ["that is garbage", async (connection) => await connection.write("\x16\x03\x03\xff\xffxxxxxxx"), /^tls_failed$/],
];
for (const [name, script, expected] of HANDSHAKES) {
  test(`https: a handshake ${name} ends the dial and leaves no connection`, async () => {
    await using server = await startRawServer(script);
    const dialer = new EgressDialer({ log: logLines().log });
    const target = { host: "127.0.0.1", port: server.port, isSecure: true };
    assert.match(await outcomeOf(dialer, target, AbortSignal.timeout(500)), expected);
    await waitUntil(() => server.connections.length === 1 && server.connections.every(({ ended }) => ended));
  });
}

test("the name server of these tests answers as a real one", async () => {
  await using dns = await startDnsServer();
  dns.set("both.test", ["192.0.2.1", "2001:db8::1", "192.0.2.2"]);
  assert.deepEqual(await dns.lookup("both.test"), ["192.0.2.1", "192.0.2.2", "2001:db8::1"]);
  await assert.rejects(dns.lookup("other.test"), { code: "ENOTFOUND" });
});

test("the servers of these tests can be reached, so that no connection means something", async () => {
  await using server = await quiet();
  const socket: Socket = connect(server.port, "127.0.0.1");
  await waitUntil(() => server.connections.length === 1);
  socket.destroy();
});
