/**
 * The cost of recording on the proxy's thread, and the throughput of the writer thread. Run:
 * node bench/storage/record-cost.ts [entries] [bodyBytes]
 */
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { openRig } from "../../apps/capture-proxy/src/storage/store-rig.ts";
import { sampleExchange } from "../../apps/capture-proxy/src/storage/read/sample-exchange.ts";

const entries = Number(process.argv[2] ?? 200_000);
const bodyBytes = Number(process.argv[3] ?? 1000);
const dataDir = mkdtempSync(join(tmpdir(), "weir-bench-"));
const rig = await openRig(dataDir);
const { store } = rig;
const body = Buffer.alloc(bodyBytes, "some text ");
const fields = Array.from({ length: 12 }, (_, index) => [`X-Header-${index}`, `value number ${index} of it`]).flat();
const sample = (index: number) =>
  sampleExchange({
    spool: store.spool,
    host: `host${index % 200}.example.com`,
    path: `/api/v1/items/${index}?page=${index % 50}`,
    status: [200, 200, 200, 304, 404, 500][index % 6] ?? 200,
    durationMs: (index * 7919) % 900,
    requestFields: ["Host", "example.com", "Accept", "*/*", ...fields],
    responseFields: ["Content-Type", index % 3 === 0 ? "application/json" : "text/html; charset=utf-8", ...fields],
    responseBody: bodyBytes === 0 ? [] : [body],
  });
const rss: number[] = [];
let cpuMs = 0;
const startedMs = performance.now();
for (let done = 0; done < entries;) {
  const exchanges = Array.from({ length: Math.min(500, entries - done) }, (_, index) => sample(done + index));
  const before = process.threadCpuUsage();
  for (const exchange of exchanges) store.record(store.nextSeq(), exchange);
  const used = process.threadCpuUsage(before);
  cpuMs += (used.user + used.system) / 1000;
  done += exchanges.length;
  while (store.status().backlogEntries > 20_000) await sleep(2);
  if (done % 50_000 === 0) rss.push(Math.round(process.memoryUsage().rss / 1e6));
}
const recordedMs = performance.now() - startedMs;
await store.flush();
const storedMs = performance.now() - startedMs;
process.stdout.write(
  `${JSON.stringify({
    entries,
    bodyBytes,
    mainThreadUsPerRecord: Number(((cpuMs * 1000) / entries).toFixed(2)),
    recordedMs: Math.round(recordedMs),
    storedRowsPerSecond: Math.round((entries / storedMs) * 1000),
    fileMb: Math.round(statSync(join(dataDir, "traffic.db")).size / 1e6),
    rssMb: rss,
    status: store.status(),
  })}\n`,
);
await store.close();
if (process.argv[4] !== "keep") rmSync(dataDir, { recursive: true });
else process.stdout.write(`${dataDir}\n`);
