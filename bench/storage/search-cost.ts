/**
 * The cost of text searches: reading every entry, building signatures, and searching with them. Run:
 * node bench/storage/search-cost.ts [entries] [percent with a body] [bodyBytes] [plain | gzip]
 */
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { TrafficFilter } from "@headworks/capture-contract";
import { openRig } from "../../apps/capture-proxy/src/storage/store-rig.ts";
import { fillWithTexts } from "./text-store.ts";

const [entries = "100000", percent = "15", bodyBytes = "20000", form = "plain"] = process.argv.slice(2);
const dataDir = mkdtempSync(join(tmpdir(), "weir-bench-"));
const print = (line: string): void => void process.stdout.write(`${line}\n`);
const megabytes = (path: string): string => ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) / 1e6).toFixed(1);
const cpuMs = (since: NodeJS.CpuUsage): number => {
  const used = process.cpuUsage(since);
  return (used.user + used.system) / 1000;
};

const QUESTIONS: Readonly<Record<string, TrafficFilter>> = {
  "in one body": { search: "Quetzalcoatlus" },
  "in one body, body:": { q: "resp.body:quetzalcoatlus" },
  "in one URL": { search: "/77777?page=" },
  "in no entry": { search: "xylophonist" },
  "in no entry, hexadecimal": { search: "a1b2c3d4e5f6" },
  "in no entry, a sentence": { search: "internal server error" },
  "in no entry, beyond ASCII": { search: "größe" },
  "in no entry, one of two": { q: "xylophonist OR größe" },
  "in some entries": { search: "deadbe" },
  "in most entries": { search: "the" },
  "in no entry, two characters": { search: "§q" },
};

try {
  await using rig = await openRig(dataDir);
  await fillWithTexts(rig, {
    entries: Number(entries),
    bodyEvery: 100 / Number(percent),
    bodyBytes: Number(bodyBytes),
    gzip: form === "gzip",
  });
  rig.add({ path: "/one", responseBody: ['{"name":"Quetzalcoatlus northropi"}'] });
  await rig.store.flush();
  print(
    `${entries} entries, ${percent} % with ${bodyBytes} bytes ${form}; ${megabytes(join(dataDir, "traffic.db"))} MB`,
  );

  let queryCount = 0;
  const ask = async (filter: TrafficFilter): Promise<{ ms: number; cpu: number; total: number }> => {
    const before = process.cpuUsage();
    const beganMs = performance.now();
    // Each query is new to the store, so that no result is cached.
    queryCount += 1;
    const { total } = await rig.rows({ ...filter, max_time: 1_000_000 + queryCount }, { limit: 200 });
    return { ms: performance.now() - beganMs, cpu: cpuMs(before), total };
  };

  const first = await ask({ search: "xylophonist" });
  print(`first search, all entries read: ${first.ms.toFixed(0)} ms, CPU ${first.cpu.toFixed(0)} ms`);
  const before = process.cpuUsage();
  for (let quietRounds = 0; quietRounds < 3;) {
    const round = process.cpuUsage();
    await sleep(300);
    quietRounds = cpuMs(round) < 30 ? quietRounds + 1 : 0;
  }
  const indexMs = cpuMs(before);
  print(`indexing: CPU ${indexMs.toFixed(0)} ms, ${((indexMs * 1000) / Number(entries)).toFixed(1)} us per entry`);
  print(
    `index: ${megabytes(join(dataDir, "traffic.db.index"))} MB; process: ${(process.memoryUsage().rss / 1e6).toFixed(0)} MB`,
  );
  for (const [name, filter] of Object.entries(QUESTIONS)) {
    const responses = [];
    for (let round = 0; round < 5; round += 1) responses.push(await ask(filter));
    const times = responses.map(({ ms }) => ms.toFixed(0)).join(" ");
    const cpu = responses.map((response) => response.cpu.toFixed(0)).join(" ");
    print(`${name.padEnd(28)} ${String(responses[0]?.total).padStart(6)} found: ${times} ms, CPU ${cpu} ms`);
  }
} finally {
  rmSync(dataDir, { recursive: true });
}
