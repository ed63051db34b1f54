// Tested by capture-store-crash.test.ts
import { writeSync } from "node:fs";
import { openRig } from "./store-rig.ts";

/** Records without end and says which entries are stored, for a test that kills it. */
const rig = await openRig(process.argv[2] ?? "");
for (;;) {
  const ids: string[] = [];
  for (let index = 0; index < 40; index += 1) {
    const size = index % 10 === 0 ? 300_000 : index * 20;
    ids.push(rig.add({ id: crypto.randomUUID(), responseBody: ["x".repeat(size)] }).id);
  }
  await rig.store.flush();
  writeSync(1, `stored ${ids.join(",")}\n`);
}
