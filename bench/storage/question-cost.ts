/**
 * The duration of the store's queries with a data directory kept by record-cost.ts. Run:
 * node bench/storage/question-cost.ts <data directory>
 */
import type { TrafficFilter } from "@headworks/capture-contract";
import { NEVER, openRig } from "../../apps/capture-proxy/src/storage/store-rig.ts";

const startedMs = performance.now();
await using rig = await openRig(process.argv[2] ?? "");
const { store } = rig;
const print = (line: string): void => void process.stdout.write(`${line}\n`);
print(`open ${Math.round(performance.now() - startedMs)} ms, ${store.status().entryCount} entries`);

async function timed(name: string, ask: () => Promise<unknown>): Promise<void> {
  const times: number[] = [];
  let shown: unknown;
  for (let round = 0; round < 3; round += 1) {
    const beganMs = performance.now();
    shown = await ask();
    times.push(performance.now() - beganMs);
  }
  print(`${name}: ${times.map((ms) => ms.toFixed(1)).join(" ")} ms -> ${JSON.stringify(shown)?.slice(0, 80)}`);
}

const total = async (filter: TrafficFilter, sort = "seq", offset = 0): Promise<number> =>
  (await rig.rows(filter, { sort, offset, limit: 200 })).total;

await timed("first rows", () => total({}));
await timed("rows at the middle", () => total({}, "seq", store.status().entryCount / 2));
for (const sort of ["duration", "host", "status"]) {
  await timed(`sorted by ${sort}, top`, () => total({}, sort));
  await timed(`sorted by ${sort}, middle`, () => total({}, sort, store.status().entryCount / 2));
}
await timed("count status", () => store.count({ status_code: "5xx" }, NEVER));
await timed("count host", () => store.count({ host: "host12.example.com" }, NEVER));
await timed("count path", () => store.count({ q: "path:items/77" }, NEVER));
await timed("filter host, rows", () => total({ host: "host12.example.com" }));
await timed("filter status and method, rows", () => total({ q: "status:>=400 method:GET" }));
await timed("summary", () => store.summarize({}, NEVER));
await timed("tree", () => store.tree({}, undefined, NEVER));
await timed("values of host", () => store.values("host", "host1", undefined, 20));
await timed("url text, page full at once", () => total({ search: "items" }));
await timed("header text, rare", () => total({ search: "value number 99 of it" }));
await timed("header text, again", () => total({ search: "value number 99 of it" }));
