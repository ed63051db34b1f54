import { mkdirSync, writeFileSync } from "node:fs";
import { loadavg } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { temporaryDirectory } from "@headworks/testkit";
import { DrivenLoad, startOriginProcess } from "../capture/driven-load.ts";
import { measureRow, measureSideBySide } from "../capture/measure-row.ts";
import type { RunOptions } from "../capture/measure-row.ts";
import { canPin, CORES, pinOwnProcess } from "../capture/pinning.ts";
import { machineFacts } from "../capture/proxies.ts";
import { median, ratioOf, rowTable } from "../capture/report.ts";
import { RULE_ROWS, SIDE_BY_SIDE } from "./rule-rows.ts";

const USAGE = `Usage: node bench/capture-rules/run.ts [options]

The cost of rules in Weir, compared to Weir without rules, mitmdump's --modify-headers and --modify-body, and mockttp's rules.

  --rows <names>    comma separated: ${[...RULE_ROWS, SIDE_BY_SIDE].map(({ row }) => row.name).join(", ")} (default: all)
  --seconds <n>     length of a round (default 3)
  --rounds <n>      counted rounds, after one uncounted round (default 3)
  --starts <n>      of side-by-side: number of restarts of both (default 4)
  --pairs <names>   of side-by-side, comma separated: ${SIDE_BY_SIDE.pairs.map(([, { name }]) => name).join(", ")} (default: all)
  --connections <n> concurrent connections (default 64)
  --json <file>     file for all results
`;

const { values } = parseArgs({
  options: {
    rows: { type: "string" },
    seconds: { type: "string", default: "3" },
    rounds: { type: "string", default: "3" },
    starts: { type: "string", default: "4" },
    pairs: { type: "string" },
    connections: { type: "string", default: "64" },
    json: { type: "string" },
    help: { type: "boolean", short: "h", default: false },
  },
});

async function compare(): Promise<void> {
  const wanted = values.rows?.split(",");
  const isWanted = ({ row }: { readonly row: { readonly name: string } }): boolean =>
    wanted === undefined || wanted.includes(row.name);
  pinOwnProcess(CORES.rest);
  console.log(machineFacts().join(" | "));
  console.log(canPin ? `The proxy runs on core ${CORES.proxy}, all else on core ${CORES.rest}.\n` : "Not pinned.\n");
  await using directory = await temporaryDirectory();
  const originCaFile = directory.file("origin-ca.pem");
  const origin = await startOriginProcess(originCaFile);
  const load = new DrivenLoad();
  const results: object[] = [];
  try {
    const options: RunOptions = {
      seconds: Number(values.seconds),
      rounds: Number(values.rounds),
      connections: Number(values.connections),
      origin,
      originCaFile,
      directory: directory.path,
      nodeOptions: [],
    };
    if (isWanted(SIDE_BY_SIDE)) results.push(...(await compareSideBySide(load, options)));
    for (const { row, contenders } of RULE_ROWS.filter(isWanted)) {
      const installed = contenders.filter(({ version }) => version() !== undefined);
      const measured = await measureRow(row, installed, load, options);
      console.log(`${rowTable(row, measured).text}\n`);
      const [own] = measured;
      results.push({
        row: row.name,
        contenders: measured.map(({ contender, ...rest }) => ({
          name: contender.name,
          ratio: ratioOf(own?.rounds ?? [], rest.rounds),
          ...rest,
        })),
      });
    }
  } finally {
    load.stop();
    origin.stop();
  }
  const average = loadavg().map((one) => one.toFixed(2));
  console.log(`Load average at the end: ${average.join(" ")}`);
  if (values.json !== undefined) {
    writeFileSync(
      values.json,
      `${JSON.stringify({ machine: machineFacts(), pinned: canPin, results }, undefined, 2)}\n`,
    );
  }
}

/** Prints the CPU per request of each kind of rules relative to its baseline, with the range of the rounds. */
async function compareSideBySide(load: DrivenLoad, options: RunOptions): Promise<object[]> {
  const { row, pairs } = SIDE_BY_SIDE;
  const wanted = values.pairs?.split(",");
  const results: object[] = [];
  const second = new DrivenLoad();
  try {
    console.log(`${row.name}: ${row.title}\n${"".padEnd(14)}x none     min     max   us/req  of none`);
    for (const pair of pairs.filter(([, { name }]) => wanted === undefined || wanted.includes(name))) {
      const directory = join(options.directory, pair[1].name);
      mkdirSync(directory);
      const rowOptions = { ...options, directory, starts: Number(values.starts) };
      const [own, other] = await measureSideBySide(row, pair, [load, second], rowOptions);
      const ratio = ratioOf(own.rounds, other.rounds);
      const figures = [ratio?.median, ratio?.min, ratio?.max].map((one) => (one?.toFixed(2) ?? "-").padStart(7));
      const us = [other, own].map(({ rounds }) =>
        median(rounds.map(({ cpuUs }) => cpuUs))
          .toFixed(1)
          .padStart(8),
      );
      const problem = own.problem ?? other.problem;
      results.push({
        row: row.name,
        kind: other.contender.name,
        ratio,
        rounds: other.rounds,
        none: own.rounds,
        problem,
      });
      console.log(
        `${other.contender.name.padEnd(13)}${figures.join(" ")} ${us.join(" ")}${problem === undefined ? "" : `  failed: ${problem}`}`,
      );
    }
    console.log("");
    return results;
  } finally {
    second.stop();
  }
}

if (values.help) console.log(USAGE);
else await compare();
