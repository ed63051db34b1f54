import { writeFileSync } from "node:fs";
import { loadavg } from "node:os";
import { parseArgs } from "node:util";
import { temporaryDirectory } from "@headworks/testkit";
import { DrivenLoad, startOriginProcess } from "./driven-load.ts";
import { measureMemory } from "./memory.ts";
import { measureRow } from "./measure-row.ts";
import { canPin, CORES, pinOwnProcess } from "./pinning.ts";
import { CONTENDERS, machineFacts, type Contender } from "./proxies.ts";
import { ratioOf, rowTable } from "./report.ts";
import { ROWS } from "./rows.ts";
import { measureStartup } from "./startup.ts";

const USAGE = `Usage: node bench/capture/run.ts [options]

Compares Weir with other intercepting proxies, CPU per request first. See ../README.md.

  --rows <names>        comma separated: ${ROWS.map(({ name }) => name).join(", ")} (default: all)
  --peers <names>       comma separated: ${CONTENDERS.slice(1)
    .map(({ name }) => name)
    .join(", ")} or none (default: all that are installed)
  --seconds <n>         length of a round (default 3)
  --rounds <n>          counted rounds, after one uncounted round (default 3)
  --connections <n>     concurrent connections (default 64; at most 16 if each request opens one)
  --node-options=<text> Node options for the proxies, such as --cpu-prof
  --json <file>         file for all results
  --memory              instead: Weir's memory after 200,000 exchanges
  --startup             instead: time from spawn to both listeners
`;

const { values } = parseArgs({
  options: {
    rows: { type: "string" },
    peers: { type: "string" },
    seconds: { type: "string", default: "3" },
    rounds: { type: "string", default: "3" },
    connections: { type: "string", default: "64" },
    "node-options": { type: "string", default: "" },
    json: { type: "string" },
    memory: { type: "boolean", default: false },
    startup: { type: "boolean", default: false },
    help: { type: "boolean", short: "h", default: false },
  },
});

/** The named items, in their own order; all without names. */
function chosen<T extends { readonly name: string }>(all: readonly T[], names: string | undefined, what: string): T[] {
  if (names === undefined) return [...all];
  const wanted = new Set(names.split(",").filter((name) => name !== "" && name !== "none"));
  const known = all.filter(({ name }) => wanted.delete(name));
  for (const name of wanted) fail(`Unknown ${what}: ${name}.\n\n${USAGE}`);
  return known;
}

function fail(sentence: string): never {
  console.error(sentence);
  process.exit(2);
}

function count(name: "seconds" | "rounds" | "connections"): number {
  const value = Number(values[name]);
  if (!(value > 0)) fail(`--${name} needs a number above 0.`);
  return value;
}

function printFacts(contenders: readonly Contender[]): void {
  console.log(machineFacts().join(" | "));
  console.log(
    canPin
      ? `One core each: the proxy runs on core ${CORES.proxy}; load client, origin and this program on core ${CORES.rest}.`
      : "taskset or a second core is missing: the proxy shares the processor with load client and origin.",
  );
  for (const { name, version, stores } of contenders) console.log(`${name} ${version() ?? ""}: stores ${stores}`);
  console.log("");
}

async function compare(): Promise<number> {
  const [weir, ...others] = CONTENDERS;
  const peers = chosen(others, values.peers, "peer");
  const missing = peers.filter(({ version }) => version() === undefined);
  const contenders = [weir, ...peers.filter((peer) => !missing.includes(peer))];
  const rows = chosen(ROWS, values.rows, "row");
  pinOwnProcess(CORES.rest);
  printFacts(contenders);
  for (const { name } of missing) {
    console.log(`${name} is skipped because it is not installed; see ../README.md.`);
  }

  await using directory = await temporaryDirectory();
  const originCaFile = directory.file("origin-ca.pem");
  const origin = await startOriginProcess(originCaFile);
  const load = new DrivenLoad();
  const options = {
    seconds: count("seconds"),
    rounds: Math.round(count("rounds")),
    connections: Math.round(count("connections")),
    origin,
    originCaFile,
    directory: directory.path,
    nodeOptions: values["node-options"].split(" ").filter((option) => option !== ""),
  };
  let failed = 0;
  const results: object[] = [];
  try {
    for (const row of rows) {
      const measured = await measureRow(row, contenders, load, options);
      const table = rowTable(row, measured);
      console.log(`${table.text}\n`);
      failed += table.failed;
      const own = measured[0]?.rounds ?? [];
      results.push({
        row: row.name,
        contenders: measured.map(({ contender, ...rest }) => ({
          name: contender.name,
          version: contender.version(),
          ratio: ratioOf(own, rest.rounds),
          ...rest,
        })),
      });
    }
  } finally {
    load.stop();
    origin.stop();
  }
  console.log(
    `Load average at the end: ${loadavg()
      .map((load) => load.toFixed(2))
      .join(" ")}`,
  );
  console.log(failed === 0 ? "All floors are met." : `${failed} not met.`);
  writeJson({ machine: machineFacts(), pinned: canPin, results });
  return failed === 0 ? 0 : 1;
}

function writeJson(result: object): void {
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(result, undefined, 2)}\n`);
}

if (values.help) {
  console.log(USAGE);
} else if (values.memory || values.startup) {
  const outcome = values.memory ? await measureMemory() : await measureStartup();
  writeJson(outcome.figures);
  process.exitCode = outcome.isHeld ? 0 : 1;
} else {
  process.exitCode = await compare();
}
