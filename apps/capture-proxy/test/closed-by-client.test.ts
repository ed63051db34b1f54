import assert from "node:assert/strict";
import { once } from "node:events";
import { request } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import { after, before, test } from "node:test";
import type { Metrics, TrafficEntry, TrafficSnapshot, TrafficSummary } from "@headworks/capture-contract";
import { entryOf, startProxyRig } from "./proxy-rig.ts";
import type { ProxyRig } from "./proxy-rig.ts";

let rig: ProxyRig;
before(async () => {
  rig = await startProxyRig();
});
after(() => rig[Symbol.asyncDispose]());

/** Asks for `path` and closes the connection once `isEnough` holds for what came. */
async function closeEarly(path: string, isEnough: (received: string) => boolean): Promise<void> {
  const { hostname, port } = new URL(rig.proxy.addresses.proxy);
  const outgoing = request({
    host: hostname,
    port,
    path: `http://127.0.0.1:${rig.originPort}${path}`,
    headers: { host: `127.0.0.1:${rig.originPort}` },
    agent: false,
  });
  outgoing.on("error", () => undefined);
  outgoing.end();
  const [incoming] = (await once(outgoing, "response")) as [IncomingMessage];
  incoming.on("error", () => undefined);
  let received = "";
  for await (const piece of incoming) {
    received += String(piece);
    if (isEnough(received)) break;
  }
  outgoing.destroy();
}

const CASES: readonly [name: string, path: string, start: (response: ServerResponse) => void, enough: string][] = [
  [
    "an event stream",
    "/events",
    (response) => response.writeHead(200, { "content-type": "text/event-stream" }).write("data: one\n\n"),
    "data: one\n\n",
  ],
  [
    "a download",
    "/download",
    (response) => response.writeHead(200, { "content-length": "1000000" }).write("x".repeat(1000)),
    "x".repeat(1000),
  ],
];

for (const [name, path, start, enough] of CASES) {
  test(`${name} that its client closes is closed, and no error`, async () => {
    rig.respond = (_seen, response) => start(response);
    const before = await rig.api<Metrics>("GET", "/metrics");
    await closeEarly(path, (received) => received.includes(enough));
    const row = await entryOf<TrafficSnapshot>(rig, path, ({ state }) => state !== "pending");
    assert.deepEqual([row.state, row.status_code, row.failure_code], ["closed", 200, "CLIENT_ABORTED"]);
    const entry = await rig.api<TrafficEntry>("GET", `/traffic/${row.id}`);
    assert.deepEqual([entry.state, entry.failure?.code, entry.response?.body], ["closed", "CLIENT_ABORTED", enough]);

    const q = encodeURIComponent(`path:${path}`);
    const summary = await rig.api<TrafficSummary>("GET", `/traffic/summary?q=${q}`);
    assert.deepEqual([summary.matched, summary.errors], [1, 0]);
    const count = async (query: string): Promise<number> =>
      (await rig.api<TrafficSummary>("GET", `/traffic/summary?q=${q}%20${query}`)).matched;
    assert.deepEqual([await count("state:closed"), await count("state:failed")], [1, 0]);
    const now = await rig.api<Metrics>("GET", "/metrics");
    assert.equal(now.requests_failed, before.requests_failed);
    assert.equal(now.requests_total, before.requests_total + 1);
  });
}

test("an exchange whose client gives up before there is a response has failed", async () => {
  rig.respond = () => undefined;
  const { hostname, port } = new URL(rig.proxy.addresses.proxy);
  const outgoing = request({ host: hostname, port, path: `http://127.0.0.1:${rig.originPort}/silent`, agent: false });
  outgoing.on("error", () => undefined);
  outgoing.end();
  await entryOf<TrafficSnapshot>(rig, "/silent", ({ state }) => state === "pending");
  outgoing.destroy();
  const row = await entryOf<TrafficSnapshot>(rig, "/silent", ({ state }) => state !== "pending");
  assert.deepEqual([row.state, row.failure_code], ["failed", "CLIENT_ABORTED"]);
});

test("a closed exchange comes back from HAR and session files as closed", async () => {
  rig.respond = (_seen, response) => void response.writeHead(200, { "content-length": "9" }).write("four");
  await closeEarly("/kept", (received) => received === "four");
  await entryOf<TrafficSnapshot>(rig, "/kept", ({ state }) => state === "closed");
  const [current] = await rig.api<{ id: string }[]>("GET", "/sessions");
  for (const [format, target] of [
    ["har", "/traffic/import/har"],
    ["session", "/sessions/import"],
  ] as const) {
    const document = await rig.api<unknown>("GET", `/sessions/${current?.id}/export?format=${format}`);
    const imported = await rig.api<{ session_id?: string; id?: string }>("POST", target, document);
    const session = imported.session_id ?? imported.id;
    const rows = await rig.api<TrafficEntry[]>("GET", `/traffic?session_id=${session}`);
    const kept = rows.find(({ request: sent }) => sent.path === "/kept");
    assert.deepEqual([format, kept?.state, kept?.failure?.code], [format, "closed", "CLIENT_ABORTED"]);
  }
});
