import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { TrafficEvent } from "@headworks/capture-contract";
import { FakeClock, rawClient, startRawServer, temporaryDirectory } from "@headworks/testkit";
import { BandwidthLimiter } from "#exchange/bandwidth-limiter.ts";
import type { Exchange } from "#exchange/exchange.ts";
import { CONTINUE, type Verdict } from "#exchange/phases.ts";
import type { EventSink } from "#slice.ts";
import { TrafficObserver } from "#slices/traffic/traffic.slice.ts";
import { openRig } from "#storage/store-rig.ts";
import { startEngine } from "./engine-harness.ts";

test("an exchange that fails once its entry is shown is stored once, with its page and its time", async () => {
  const directory = await temporaryDirectory();
  await using stored = await openRig(directory.path);
  const { store } = stored;
  const told: TrafficEvent[] = [];
  const events: EventSink = {
    hasListeners: true,
    traffic: (event) => void told.push(event),
    changed: () => undefined,
    notice: () => undefined,
    task: () => Promise.reject(new Error("Nothing here takes long")),
  };
  const traffic = new TrafficObserver({ clock: new FakeClock(), events, store });

  const show = (exchange: Exchange): typeof CONTINUE => {
    traffic.show(exchange);
    return CONTINUE;
  };
  const engine = await startEngine({
    interceptors: [{ name: "blocklist", onRequestHead: show }],
    observers: [traffic],
    spool: store.spool,
  });
  await using origin = await startRawServer(async (connection) => {
    await connection.readUntil("\r\n\r\n");
    connection.destroy();
  });
  const client = await rawClient(engine.port);
  await client.write(`GET http://127.0.0.1:${origin.port}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
  const page = (await client.collect()).toString().split("\r\n\r\n")[1];
  const [exchange] = await engine.waitFor(1);
  await store.flush();
  const { rows } = await stored.rows();
  assert.deepEqual(
    rows.map(({ state, failure_code: code, status_code: status }) => [state, code, status]),
    [["failed", "UPSTREAM_CLOSED", 502]],
  );
  assert.ok((rows[0]?.duration_ms ?? 0) > 0);
  assert.equal((await stored.entry(exchange?.id ?? ""))?.response?.body, page);
  assert.equal(store.status().entriesLost, 0);
  assert.deepEqual(
    told.map((event) => (event.type === "Added" || event.type === "Updated" ? [event.type, event.data.state] : [])),
    [
      ["Added", "pending"],
      ["Updated", "pending"],
      ["Updated", "failed"],
    ],
  );
  client.destroy();
  await engine.stop();
  await directory.remove();
});

test("a verdict that comes while the page of a failure is on its way to a slow client changes nothing", async () => {
  const verdict = Promise.withResolvers<Verdict>();
  const asked = Promise.withResolvers<void>();
  const down = new BandwidthLimiter(new FakeClock());
  down.setRate(1000);
  await using origin = await startRawServer(async (connection) => {
    await connection.readUntil("\r\n\r\n");
    await connection.write("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort");
    await asked.promise;
    connection.destroy();
  });
  const engine = await startEngine({
    interceptors: [
      {
        name: "blocklist",
        onRequestHead: (exchange) => {
          exchange.pace = { down, up: new BandwidthLimiter(new FakeClock()) };
          return CONTINUE;
        },
        onResponseHead: async (exchange) => {
          const content = exchange.responseContent(100);
          asked.resolve();
          await content;
          return await verdict.promise;
        },
      },
    ],
  });
  const client = await rawClient(engine.port);
  await client.write(`GET http://127.0.0.1:${origin.port}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
  const head = await client.readUntil("\r\n\r\n");
  verdict.resolve(CONTINUE);
  await nextTurn();
  down.setRate(0);
  const rest = await client.collect();
  assert.match(head.toString(), /^HTTP\/1\.1 502 /);
  assert.match(rest.toString(), /<\/html>\n$/);
  const [exchange] = await engine.waitFor(1);
  assert.equal(exchange?.state.step === "failed" && exchange.state.failure.code, "UPSTREAM_CLOSED");
  client.destroy();
  await engine.stop();
});
