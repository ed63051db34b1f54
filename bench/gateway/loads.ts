import { spawnSync } from "node:child_process";
import { runProcess } from "@headworks/testkit";
import { CORES, pinned, type CommandLine } from "../capture/pinning.ts";
import { API_KEY } from "./contenders.ts";

/** The result of a load. */
export interface Played {
  readonly requests: number;
  readonly perSecond: number;
  /** Undefined if the program does not report it. */
  readonly p99Ms: number | undefined;
  /** The program's error message. */
  readonly problem: string | undefined;
}

interface Load {
  readonly url: string;
  readonly seconds: number;
  /** Kept connections, with one request in flight each. */
  readonly connections: number;
}

/** Concurrent streams on each HTTP/2 connection; there are fewer connections by the same factor. */
const STREAMS = 8;

/** wrk; `script` defines requests other than GET. */
export async function playHttp1(load: Load, script: string | undefined): Promise<Played> {
  const { url, seconds, connections } = load;
  const scripted = script === undefined ? [] : ["-s", script];
  const fields = ["-H", `X-API-Key: ${API_KEY}`];
  const { stdout, problem } = await play(seconds, {
    command: "wrk",
    args: ["-t1", "--latency", `-c${connections}`, `-d${seconds}s`, ...fields, ...scripted, url],
  });
  return {
    requests: Number(/(\d+) requests in/.exec(stdout)?.[1] ?? 0),
    perSecond: Number(/Requests\/sec:\s+([\d.]+)/.exec(stdout)?.[1] ?? 0),
    p99Ms: latencyMs(/ 99%\s+([\d.]+)(us|ms|s)/.exec(stdout)),
    problem: problem ?? /Non-2xx or 3xx responses: (\d+)|Socket errors: .*/.exec(stdout)?.[0],
  };
}

export function hasHttp2Load(): boolean {
  return spawnSync("h2load", ["--version"]).status === 0;
}

/** h2load, with the same number of concurrent requests on fewer connections. */
export async function playHttp2({ url, seconds, connections }: Load): Promise<Played> {
  const fewer = Math.max(1, Math.round(connections / STREAMS));
  const { stdout, problem } = await play(seconds, {
    command: "h2load",
    args: ["-t1", `-c${fewer}`, `-m${STREAMS}`, `-D${seconds}`, "-H", `X-API-Key: ${API_KEY}`, url],
  });
  const [, succeeded = 0, failed = 0] = /(\d+) succeeded, (\d+) failed/.exec(stdout) ?? [];
  const isHttp2 = stdout.includes("Application protocol: h2");
  const wrong = Number(failed) > 0 ? `${failed} requests failed` : isHttp2 ? undefined : "the protocol was not HTTP/2";
  return {
    requests: Number(succeeded),
    perSecond: Number(/, ([\d.]+) req\/s/.exec(stdout)?.[1] ?? 0),
    p99Ms: undefined,
    problem: problem ?? wrong,
  };
}

async function play(seconds: number, load: CommandLine): Promise<{ stdout: string; problem: string | undefined }> {
  const { command, args } = pinned(CORES.rest, load);
  const { stdout, stderr, code } = await runProcess(command, args, { timeoutMs: seconds * 1000 + 30_000 });
  return { stdout, problem: code === 0 ? undefined : stderr };
}

function latencyMs(found: RegExpExecArray | null): number {
  const factor = { us: 0.001, ms: 1, s: 1000 }[found?.[2] ?? ""] ?? Number.NaN;
  return Number(found?.[1]) * factor;
}
