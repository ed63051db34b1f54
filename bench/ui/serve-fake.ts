import { join } from "node:path";
import { parseArgs } from "node:util";
import { startFakeApi } from "./fake-api.ts";

/** `node bench/ui/serve-fake.ts --rows 4212 --per-second 5 --port 3901`: the built web UI over generated traffic. */
const { values } = parseArgs({
  options: {
    rows: { type: "string", default: "4212" },
    "per-second": { type: "string", default: "0" },
    port: { type: "string", default: "3901" },
  },
});
const api = await startFakeApi({
  rows: Number(values.rows),
  perSecond: Number(values["per-second"]),
  port: Number(values.port),
  distFolder: join(import.meta.dirname, "../../apps/capture-ui/dist"),
});
console.log(api.url);
