import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory, waitUntil } from "@headworks/testkit";
import { DrivenLoad, startOriginProcess } from "./driven-load.ts";
import { CORES, pinOwnProcess } from "./pinning.ts";
import { residentMb, untilQuiet } from "./processor-time.ts";
import { startWeir } from "./proxies.ts";

const EXCHANGES = 200_000;
const LIMIT_MB = 350;

/** The result of a mode of the benchmark: figures for the file, and whether its floor is met. */
export interface Outcome {
  readonly figures: object;
  readonly isHeld: boolean;
}

/** The used parts of Node's diagnostic report; sizes in bytes. */
interface DiagnosticReport {
  readonly javascriptHeap: Readonly<Record<"totalCommittedMemory" | "usedMemory" | "externalMemory", number>>;
  readonly workers?: readonly DiagnosticReport[];
}

/**
 * Sends 200,000 exchanges of 2 KB over 64 kept HTTPS connections through a new Weir and prints its memory once it
 * is quiet again: resident memory, divided into the V8 heaps (main thread and workers) and the rest.
 */
export async function measureMemory(): Promise<Outcome> {
  pinOwnProcess(CORES.rest);
  await using directory = await temporaryDirectory();
  const originCaFile = directory.file("origin-ca.pem");
  const origin = await startOriginProcess(originCaFile);
  const load = new DrivenLoad();
  const report = ["--report-on-signal", "--report-signal=SIGUSR2", "--report-exclude-network"];
  const nodeOptions = [...report, `--report-directory=${directory.path}`];
  const weir = await startWeir({ directory: directory.path, originCaFile, nodeOptions });
  try {
    const before = residentMb(weir.pid).nowMb;
    await load.open({
      proxyPort: weir.port,
      scheme: "https",
      originHost: origin.host,
      originPort: origin.httpsPort,
      bodyBytes: 2048,
      connections: 64,
      isNewConnectionEach: false,
      caPem: weir.caPem,
    });
    const result = await load.run({ requests: EXCHANGES - 64 });
    await untilQuiet(weir.pid);
    const stored = await weir.stored(EXCHANGES);
    const { nowMb, peakMb } = residentMb(weir.pid);
    const mapped = mappedMb(weir.pid);
    const heaps = await heapsOf(weir.pid, directory.path);
    await load.close();
    const committedMb = heaps.reduce((sum, heap) => sum + heap.committedMb, 0);
    const figures = { exchanges: EXCHANGES, residentMb: nowMb, peakMb, beforeMb: before, ...mapped, heaps };
    const mb = (value: number): string => `${value.toFixed(0).padStart(6)} MB`;
    console.log(
      [
        `Memory after ${EXCHANGES} exchanges (${(result.requests / result.elapsedMs).toFixed(1)} per ms; ${stored})`,
        `  ${mb(nowMb)}  resident; limit ${LIMIT_MB}: ${nowMb < LIMIT_MB ? "pass" : "FAIL"}`,
        `  ${mb(peakMb)}  resident at its peak`,
        `  ${mb(before)}  resident before the first exchange`,
        `  ${mb(mapped.fileMb)}  of it mapped files (the program, the index of the database's log)`,
        `  ${mb(committedMb)}  of it V8 heaps, committed:`,
        ...heaps.map((heap) => `     ${heap.name}: ${heap.committedMb.toFixed(0)} MB, ${heap.usedMb.toFixed(0)} used`),
        `  ${mb(nowMb - mapped.fileMb - committedMb)}  of it other native memory (buffers, sockets, TLS, page caches)`,
      ].join("\n"),
    );
    return { figures, isHeld: nowMb < LIMIT_MB };
  } finally {
    await weir.stop();
    load.stop();
    origin.stop();
  }
}

/** Resident memory of mapped files, in MB. */
function mappedMb(pid: number): { readonly fileMb: number } {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const read = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(status)?.[1] ?? 0);
  return { fileMb: (read("RssFile") + read("RssShmem")) / 1024 };
}

interface Heap {
  readonly name: string;
  readonly committedMb: number;
  readonly usedMb: number;
  readonly externalMb: number;
}

/** The heap of each thread, from the report that Node writes on a signal. */
async function heapsOf(pid: number, directory: string): Promise<Heap[]> {
  process.kill(pid, "SIGUSR2");
  const report = await waitUntil(
    () => {
      const name = readdirSync(directory).find((file) => file.startsWith("report.") && file.endsWith(".json"));
      return name === undefined ? undefined : parsed(readFileSync(join(directory, name), "utf8"));
    },
    { what: "the diagnostic report" },
  );
  const heap = (name: string, { javascriptHeap }: DiagnosticReport): Heap => ({
    name,
    committedMb: javascriptHeap.totalCommittedMemory / 1e6,
    usedMb: javascriptHeap.usedMemory / 1e6,
    externalMb: javascriptHeap.externalMemory / 1e6,
  });
  return [
    heap("main thread", report),
    ...(report.workers ?? []).map((worker, index) => heap(`worker ${index + 1}`, worker)),
  ];
}

/** Undefined while the file is incomplete. */
function parsed(text: string): DiagnosticReport | undefined {
  try {
    return JSON.parse(text) as DiagnosticReport;
  } catch {
    return undefined;
  }
}
