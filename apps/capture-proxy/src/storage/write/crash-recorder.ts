import { writeSync } from "node:fs";
import type { ExchangeView } from "#exchange/exchange.ts";
import { sampleFrame } from "../read/sample-exchange.ts";
import { openRig } from "../store-rig.ts";
import type { StoreRig } from "../store-rig.ts";

const FRAMES_OF_A_STREAM = 40;

function streamOf({ store }: StoreRig, exchange: ExchangeView): void {
  const recorder = store.streams.open(exchange, "websocket");
  recorder.change({ state: "open" });
  for (let index = 0; index < FRAMES_OF_A_STREAM; index += 1) {
    recorder.frame(sampleFrame("x".repeat(index * 7), { atMs: Date.now() }));
  }
}

/** Records endlessly and prints the stored ids, for a test that kills the process. */
const rig = await openRig(process.argv[2] ?? "");
for (;;) {
  const ids: string[] = [];
  for (let index = 0; index < 40; index += 1) {
    const size = index % 10 === 0 ? 300_000 : index * 20;
    const exchange = rig.add({ id: crypto.randomUUID(), responseBody: ["x".repeat(size)] });
    ids.push(exchange.id);
    if (index % 20 === 0) streamOf(rig, exchange);
  }
  await rig.store.flush();
  writeSync(1, `stored ${ids.join(",")}\n`);
}
