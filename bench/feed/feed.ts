/**
 * The cost of live events on the proxy thread: one process with the hub, another with the clients, 5,000 events per second
 * (half of them an entry's second event) for ten seconds. Prints the CPU of the whole process with and without subscribers;
 * the difference is the cost of the subscribers.
 *
 *   node bench/feed/feed.ts [clients=5] [eventsPerSecond=5000] [batch|single]
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { performance } from "node:perf_hooks";
import type { TrafficSnapshot } from "@headworks/capture-contract";
import { WebSocket } from "ws";
import { EventHub } from "../../apps/capture-proxy/src/api/events.ts";

const [clientsText = "5", rateText = "5000", mode = "batch", port] = process.argv.slice(2);
const clients = Number(clientsText);
const eventsPerSecond = Number(rateText);
const SECONDS = 10;
const TICK_MS = 5;
/** Entries take 120 ms, so that their two events are in different flushes and are not merged. */
const inFlight = Math.round((eventsPerSecond / 2) * 0.12);

if (port === undefined) await measure();
else await listen(Number(port));

async function measure(): Promise<void> {
  const clock = {
    now: Date.now,
    monotonic: () => performance.now(),
    every: (ms: number, run: () => void) => cleared(setInterval(run, ms).unref()),
    after: (ms: number, run: () => void) => cleared(setTimeout(run, ms).unref()),
    soon: (run: () => void) => void setImmediate(run),
  };
  const hub = new EventHub({ clock, latestRows: async () => [], log: console });
  const server = createServer();
  server.on("upgrade", (request, socket, head) => hub.accept(request, socket, head));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const silent = await run(hub);
  const child = fork(import.meta.filename, [
    clientsText,
    rateText,
    mode,
    String((server.address() as AddressInfo).port),
  ]);
  await once(child, "message");
  const subscribed = await run(hub);
  child.send("report");
  const [received] = (await once(child, "message")) as [{ events: number; frames: number }];
  const core = (cpuMs: number): string => `${((cpuMs / (SECONDS * 1000)) * 100).toFixed(2)} % of a core`;
  console.log(`${clients} clients (${mode}), ${subscribed.events} events in ${SECONDS} s`);
  console.log(`  generator alone   ${core(silent.cpuMs)}`);
  console.log(
    `  with subscribers  ${core(subscribed.cpuMs)}, event loop ${(subscribed.utilization * 100).toFixed(2)} %`,
  );
  console.log(`  subscribers cost  ${core(subscribed.cpuMs - silent.cpuMs)}`);
  console.log(`  a call of traffic() ${((subscribed.callMs / subscribed.events) * 1e6).toFixed(0)} ns`);
  console.log(`  received          ${received.events} events in ${received.frames} frames by all clients`);
  child.disconnect();
  hub.close();
  server.close();
}

function cleared(timer: NodeJS.Timeout): () => void {
  return () => clearTimeout(timer);
}

async function run(hub: EventHub): Promise<{ cpuMs: number; utilization: number; events: number; callMs: number }> {
  const pending: TrafficSnapshot[] = [];
  let events = 0;
  let callMs = 0;
  const cpu = process.cpuUsage();
  const loop = performance.eventLoopUtilization();
  const started = performance.now();
  for (let elapsed = 0; elapsed < SECONDS * 1000; elapsed = performance.now() - started) {
    const due = Math.floor((elapsed / 1000) * eventsPerSecond);
    const begun = performance.now();
    for (; events < due; events += 1) {
      const waiting = events % 2 === 1 && pending.length > inFlight ? pending.shift() : undefined;
      if (waiting) hub.traffic({ type: "Updated", data: { ...waiting, state: "complete", status_code: 200 } });
      else pending.push(emit(hub, events));
    }
    callMs += performance.now() - begun;
    await new Promise((resolve) => setTimeout(resolve, TICK_MS));
  }
  const { user, system } = process.cpuUsage(cpu);
  return {
    cpuMs: (user + system) / 1000,
    utilization: performance.eventLoopUtilization(loop).utilization,
    events,
    callMs,
  };
}

function emit(hub: EventHub, number: number): TrafficSnapshot {
  const row = newRow(number);
  hub.traffic({ type: "Added", data: row });
  return row;
}

function newRow(number: number): TrafficSnapshot {
  const path = `/v1/accounts/${number}/items?page=2&sort=name`;
  return {
    id: `0198f0f0-0000-7000-8000-${String(number).padStart(12, "0")}`,
    seq: number,
    session_id: "0198f0f0-0000-7000-8000-0000000000aa",
    state: "pending",
    method: "GET",
    url: `https://api.example.test${path}`,
    scheme: "https",
    host: "api.example.test",
    path,
    status_code: null,
    status_message: null,
    content_type: null,
    response_content_type: "application/json",
    resource_type: "json",
    duration_ms: 12.34,
    ttfb_ms: 11.2,
    request_size: 345,
    response_size: 6789,
    timestamp: "2026-01-01T00:00:00.000Z",
    modified: false,
    applied: [],
    has_request_body: false,
    has_response_body: true,
    is_passthrough: false,
    http_version: "HTTP/1.1",
    script_intercepted: false,
    device_id: null,
    client_addr: "127.0.0.1:50000",
    server_addr: "192.0.2.1:443",
    failure_code: null,
    source: "upstream",
    has_note: false,
    timings: { blocked: 0.1, dns: null, connect: null, tls: null, send: 0.2, wait: 10.9, receive: 1.14 },
  };
}

/** The other process: counts received events without parsing them. */
async function listen(hubPort: number): Promise<void> {
  let events = 0;
  let frames = 0;
  const path = mode === "batch" ? "/ws?batch=1" : "/ws";
  const sockets = Array.from({ length: clients }, () => new WebSocket(`ws://127.0.0.1:${hubPort}${path}`));
  for (const socket of sockets) {
    socket.on("message", (data) => {
      frames += 1;
      events += (data as Buffer).toString("latin1").split('"type":"Traffic"').length - 1;
    });
  }
  await Promise.all(sockets.map((socket) => once(socket, "open")));
  await new Promise((resolve) => setTimeout(resolve, 500));
  process.send?.("ready");
  process.once("message", () => setTimeout(() => process.send?.({ events, frames }), 500));
  process.once("disconnect", () => process.exit());
}
