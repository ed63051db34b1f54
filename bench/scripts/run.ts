import { loadavg } from "node:os";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { temporaryDirectory } from "@headworks/testkit";
import { createScriptRunner } from "../../apps/capture-proxy/src/scripting/script-runner.ts";
import { DrivenLoad, startOriginProcess } from "../capture/driven-load.ts";
import { measureRow } from "../capture/measure-row.ts";
import { canPin, CORES, pinOwnProcess } from "../capture/pinning.ts";
import { machineFacts, mitmdumpWith, startWeir, type Contender } from "../capture/proxies.ts";
import { rowTable } from "../capture/report.ts";
import type { Row } from "../capture/rows.ts";

const USAGE = `Usage: node bench/scripts/run.ts [options]

The cost of scripts in Weir, compared to Weir without scripts and to the same add-on of mitmdump, and of a call alone.

  --rows <names>    comma separated: call, heads, body-10k (default: all)
  --seconds <n>     length of a round (default 3)
  --rounds <n>      counted rounds, after one uncounted round (default 3)
  --connections <n> concurrent connections (default 64)
`;

const { values } = parseArgs({
  options: {
    rows: { type: "string", default: "call,heads,body-10k" },
    seconds: { type: "string", default: "3" },
    rounds: { type: "string", default: "3" },
    connections: { type: "string", default: "64" },
    help: { type: "boolean", short: "h", default: false },
  },
});

const EDIT = { from: '"items"', to: '"goods"' } as const;

const NOTHING = "function onRequest() {} function onResponse() {}";
const HEADER = `function onRequest(request) { request.headers["X-Test"] = "1" }
  function onResponse(request, response) { response.headers["X-Test"] = "1" }`;
const BODY = `function onResponse(request, response) { const { items } = response.json(); response.setJson({ goods: items }) }`;

const ADDON_NOTHING = "def request(flow): pass\ndef response(flow): pass\n";
const ADDON_HEADER = `def request(flow): flow.request.headers["X-Test"] = "1"
def response(flow): flow.response.headers["X-Test"] = "1"
`;
const ADDON_BODY = `import json
def response(flow):
    data = json.loads(flow.response.text)
    flow.response.text = json.dumps({"goods": data["items"]}, separators=(",", ":"))
`;

function weirWith(name: string, source: string | undefined, edit?: Contender["edit"]): Contender {
  return {
    name,
    stores: "every exchange, heads and bodies, in SQLite",
    version: () => "",
    ...(edit === undefined ? {} : { edit }),
    start: async (site) => {
      const weir = await startWeir(site);
      if (source === undefined) return weir;
      const response = await fetch(`${weir.api}/api/scripts`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ name, source }),
      });
      if (response.status !== 201) throw new Error(`POST /api/scripts: ${response.status} ${await response.text()}`);
      return weir;
    },
  };
}

interface Rows {
  readonly row: Row;
  readonly contenders: readonly [Contender, ...Contender[]];
}

function rowsWith(directory: string): readonly Rows[] {
  const addon = (name: string, source: string): string[] => {
    const file = join(directory, `${name}.py`);
    writeFileSync(file, source);
    return ["-s", file];
  };
  const kept = { scheme: "https", isNewConnectionEach: false, targets: {} } as const;
  return [
    {
      row: { ...kept, name: "heads", title: "2 KB responses: scripts that do nothing or set a field", bodyBytes: 2048 },
      contenders: [
        weirWith("no script", undefined),
        weirWith("no-op", NOTHING),
        weirWith("header", HEADER),
        mitmdumpWith("mitmdump no-op", addon("nothing", ADDON_NOTHING)),
        mitmdumpWith("mitmdump hdr", addon("header", ADDON_HEADER)),
      ],
    },
    {
      row: {
        ...kept,
        name: "body-10k",
        title: "10 KB responses: a member of the JSON body renamed",
        bodyBytes: 10_240,
      },
      contenders: [
        weirWith("no script", undefined),
        weirWith("json", BODY, EDIT),
        mitmdumpWith("mitmdump json", addon("body", ADDON_BODY), EDIT),
      ],
    },
  ];
}

/** Prints the time and the processor time of calls that follow each other, which include both threads. */
async function measureCalls(): Promise<void> {
  const runner = createScriptRunner({
    limits: () => ({ timeoutMs: 5000, memoryLimitMb: 10, capturesConsole: true }),
    values: { all: () => new Map(), write: () => undefined },
    onProblem: () => undefined,
    after: () => () => undefined,
  });
  const text = `{"items":"${"x".repeat(10_220)}"}`;
  const fields = ["Host", "example.com", "User-Agent", "bench", "Accept", "*/*", "Content-Type", "application/json"];
  const input = {
    context: { requestId: "id", sessionId: "session", hook: "on_response" },
    request: { method: "GET", url: "https://example.com/items?page=2", fields },
    response: { status: 200, reason: "OK", fields, durationMs: 5 },
    responseBody: "text",
  };
  console.log(
    "call: one call of onResponse, the next after its end\n             us  CPU us  inside the interpreter us",
  );
  for (const [name, source, body] of [
    ["no-op", NOTHING, null],
    ["header", HEADER, null],
    ["json 10 KB", BODY, text],
  ] as const) {
    runner.load([{ id: name, name, source }]);
    const calls = async (count: number): Promise<number> => {
      let insideMs = 0;
      for (let call = 0; call < count; call += 1) {
        const { error, durationMs } = await runner.call(name, "on_response", input, [null, body]);
        if (error !== null) throw new Error(error);
        insideMs += durationMs;
      }
      return insideMs;
    };
    await calls(5000);
    const COUNT = 20_000;
    const cpu = process.cpuUsage();
    const startedMs = performance.now();
    const insideMs = await calls(COUNT);
    const elapsedMs = performance.now() - startedMs;
    const { user, system } = process.cpuUsage(cpu);
    const figures = [(elapsedMs * 1000) / COUNT, (user + system) / COUNT, (insideMs * 1000) / COUNT];
    console.log(name.padEnd(11), ...figures.map((figure) => figure.toFixed(1).padStart(7)));
  }
  await runner.close();
  console.log("");
}

async function compare(): Promise<void> {
  const wanted = values.rows.split(",");
  console.log(machineFacts().join(" | "));
  if (wanted.includes("call")) await measureCalls();
  await using directory = await temporaryDirectory();
  const chosen = rowsWith(directory.path).filter(({ row }) => wanted.includes(row.name));
  if (chosen.length > 0) {
    pinOwnProcess(CORES.rest);
    console.log(canPin ? `The proxy runs on core ${CORES.proxy}, all else on core ${CORES.rest}.\n` : "Not pinned.\n");
    const originCaFile = directory.file("origin-ca.pem");
    const origin = await startOriginProcess(originCaFile);
    const load = new DrivenLoad();
    try {
      for (const { row, contenders } of chosen) {
        const rowDirectory = directory.file(row.name);
        mkdirSync(rowDirectory);
        const installed = contenders.filter(({ version }) => version() !== undefined);
        const measured = await measureRow(row, installed, load, {
          seconds: Number(values.seconds),
          rounds: Number(values.rounds),
          connections: Number(values.connections),
          origin,
          originCaFile,
          directory: rowDirectory,
          nodeOptions: [],
        });
        console.log(`${rowTable(row, measured).text}\n`);
      }
    } finally {
      load.stop();
      origin.stop();
    }
  }
  const average = loadavg().map((one) => one.toFixed(2));
  console.log(`Load average at the end: ${average.join(" ")}`);
}

if (values.help) console.log(USAGE);
else await compare();
