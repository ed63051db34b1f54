import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { DrivenLoad } from "./driven-load.ts";
import type { LoadResult } from "./load.ts";
import type { LoadJob } from "./load-job.ts";
import type { OriginReady } from "./origin.ts";
import { processorTime, residentMb, untilQuiet } from "./processor-time.ts";
import type { Contender, RunningProxy } from "./proxies.ts";
import type { Row } from "./rows.ts";

/** The results of one contender in one round. */
export interface Round {
  readonly requests: number;
  readonly perSecond: number;
  /** CPU time of the proxy per request: all threads and child processes, until it is quiet again. */
  readonly cpuUs: number;
  /** CPU time of its first thread. */
  readonly mainThreadUs: number;
  /** Share of one core that the proxy used during the requests; near 1 means that the proxy was the bottleneck. */
  readonly coreShare: number;
  /** Connections that the load client had to reopen. */
  readonly reopened: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** One contender in one row. */
export interface Measured {
  readonly contender: Contender;
  readonly rounds: readonly Round[];
  readonly residentMb: number;
  readonly stored: string;
  /** Set after a failure; earlier results are kept. */
  readonly problem: string | undefined;
}

export interface RunOptions {
  readonly seconds: number;
  readonly rounds: number;
  readonly connections: number;
  readonly origin: OriginReady;
  readonly originCaFile: string;
  readonly directory: string;
  readonly nodeOptions: readonly string[];
}

/** A contender in a row; `failed` after a wrong response or an exit. */
interface Participant {
  readonly contender: Contender;
  readonly proxy: RunningProxy | undefined;
  readonly rounds: Round[];
  exchanges: number;
  problem: string | undefined;
}

/** New connections cost so much that fewer keep each proxy busy, and slow proxies would time out with more. */
const NEW_AT_A_TIME = 16;

/** The contenders' compilers need thousands of requests to finish. */
const WARM_UP_SECONDS = 8;

/**
 * Measures a row: all contenders are restarted, serve one uncounted round, and then take turns
 * in rounds, so that other load of the machine affects all of them alike.
 */
export async function measureRow(
  row: Row,
  contenders: readonly Contender[],
  load: DrivenLoad,
  options: RunOptions,
): Promise<Measured[]> {
  const participants: Participant[] = [];
  try {
    const protocol = row.by ?? row.inside;
    const able = contenders.filter(({ protocols = [] }) => protocol === undefined || protocols.includes(protocol));
    for (const contender of able) participants.push(await enter(row, contender, options));
    for (let round = 0; round <= options.rounds; round += 1) {
      // Every other round runs in reverse order, so that no contender always follows the same one.
      const order = round % 2 === 0 ? participants : participants.toReversed();
      for (const participant of order) await playRound(row, participant, load, options, round > 0);
    }
    const measured: Measured[] = [];
    for (const participant of participants) measured.push(await summary(participant));
    return measured;
  } finally {
    for (const { proxy } of participants) await proxy?.stop();
  }
}

/**
 * Measures two contenders concurrently, each with a load of its own, on a shared core, so that other load and the
 * current speed of the machine affect both at any time. Their CPU per request can be compared more
 * precisely than that of alternating rounds; requests per second are meaningless here. Two processes of the same program differ by
 * a tenth for their whole life, so both are restarted `starts` times, in alternating order.
 */
export async function measureSideBySide(
  row: Row,
  contenders: readonly [Contender, Contender],
  loads: readonly [DrivenLoad, DrivenLoad],
  { starts, ...options }: RunOptions & { readonly starts: number },
): Promise<[Measured, Measured]> {
  const [own, other] = contenders;
  const merged: [Measured, Measured][] = [];
  for (let start = 0; start < starts; start += 1) {
    const directory = join(options.directory, `start-${start}`);
    mkdirSync(directory);
    const isTurned = start % 2 === 1;
    const started = await measurePair(row, isTurned ? [other, own] : [own, other], loads, { ...options, directory });
    merged.push(isTurned ? [started[1], started[0]] : started);
  }
  const joined = (side: 0 | 1): Measured => {
    const all = merged.map((pair) => pair[side]);
    const [last] = all.slice(-1);
    if (last === undefined) throw new RangeError("starts is to be at least 1");
    const problem = all.find((one) => one.problem !== undefined)?.problem;
    return { ...last, rounds: all.flatMap(({ rounds }) => rounds), problem };
  };
  return [joined(0), joined(1)];
}

async function measurePair(
  row: Row,
  contenders: readonly [Contender, Contender],
  loads: readonly [DrivenLoad, DrivenLoad],
  options: RunOptions,
): Promise<[Measured, Measured]> {
  const [own, other] = contenders;
  const pair = [await enter(row, own, options), await enter(row, other, options)] as const;
  try {
    for (let round = 0; round <= options.rounds; round += 1) {
      const opened = [
        await openRound(row, pair[0], loads[0], options),
        await openRound(row, pair[1], loads[1], options),
      ] as const;
      await Promise.all([
        runRound(pair[0], opened[0], loads[0], options, round > 0),
        runRound(pair[1], opened[1], loads[1], options, round > 0),
      ]);
    }
    return [await summary(pair[0]), await summary(pair[1])];
  } finally {
    for (const { proxy } of pair) await proxy?.stop();
  }
}

async function enter(row: Row, contender: Contender, options: RunOptions): Promise<Participant> {
  const directory = join(options.directory, `${row.name}-${contender.name}`);
  mkdirSync(directory);
  const { originCaFile, nodeOptions } = options;
  try {
    const { by, inside } = row;
    const proxy = await contender.start({ directory, originCaFile, nodeOptions, protocol: by ?? inside });
    return { contender, proxy, rounds: [], exchanges: 0, problem: undefined };
  } catch (error) {
    return { contender, proxy: undefined, rounds: [], exchanges: 0, problem: messageOf(error) };
  }
}

async function playRound(
  row: Row,
  participant: Participant,
  load: DrivenLoad,
  options: RunOptions,
  counts: boolean,
): Promise<void> {
  const isOpen = await openRound(row, participant, load, options);
  await runRound(participant, isOpen, load, options, counts);
}

/** Connects; false if the participant has failed. */
async function openRound(row: Row, participant: Participant, load: DrivenLoad, options: RunOptions): Promise<boolean> {
  const { proxy } = participant;
  if (proxy === undefined || participant.problem !== undefined) return false;
  const connections = row.isNewConnectionEach ? Math.min(NEW_AT_A_TIME, options.connections) : options.connections;
  const job: LoadJob = {
    proxyPort: proxy.port,
    scheme: row.scheme,
    bySocks5: row.by === "socks5",
    inside: row.inside,
    originHost: options.origin.host,
    originPort: portOf(row, options.origin),
    bodyBytes: row.bodyBytes,
    connections,
    isNewConnectionEach: row.isNewConnectionEach,
    caPem: proxy.caPem,
    edit: participant.contender.edit,
  };
  try {
    await load.open(job);
    if (!row.isNewConnectionEach) participant.exchanges += connections;
    await untilQuiet(proxy.pid);
    return true;
  } catch (error) {
    await failed(participant, load, error);
    return false;
  }
}

async function runRound(
  participant: Participant,
  isOpen: boolean,
  load: DrivenLoad,
  options: RunOptions,
  counts: boolean,
): Promise<void> {
  const { proxy } = participant;
  if (proxy === undefined || !isOpen) return;
  try {
    const before = processorTime(proxy.pid);
    const seconds = counts ? options.seconds : Math.max(options.seconds, WARM_UP_SECONDS);
    const result = await load.run({ milliseconds: seconds * 1000 });
    const atEnd = processorTime(proxy.pid);
    await untilQuiet(proxy.pid);
    const after = processorTime(proxy.pid);
    participant.exchanges += result.requests;
    if (counts) participant.rounds.push(asRound(result, before, atEnd, after));
    await load.close();
  } catch (error) {
    await failed(participant, load, error);
  }
}

async function failed(participant: Participant, load: DrivenLoad, error: unknown): Promise<void> {
  participant.problem = messageOf(error);
  await load.close().catch(() => undefined);
}

function portOf({ scheme, inside }: Row, { httpPort, httpsPort, http2Port }: OriginReady): number {
  if (inside === "http2") return http2Port;
  return scheme === "http" ? httpPort : httpsPort;
}

type Moment = ReturnType<typeof processorTime>;

function asRound(result: LoadResult, before: Moment, atEnd: Moment, after: Moment): Round {
  const { requests, elapsedMs, opened, p50Ms, p99Ms } = result;
  return {
    requests,
    perSecond: (requests / elapsedMs) * 1000,
    cpuUs: (after.totalUs - before.totalUs) / requests,
    mainThreadUs: (after.mainThreadUs - before.mainThreadUs) / requests,
    coreShare: (atEnd.totalUs - before.totalUs) / 1000 / elapsedMs,
    reopened: opened,
    p50Ms,
    p99Ms,
  };
}

async function summary(participant: Participant): Promise<Measured> {
  const { contender, proxy, rounds, exchanges } = participant;
  let { problem } = participant;
  let stored = "";
  if (proxy !== undefined && problem === undefined) {
    try {
      stored = await proxy.stored(exchanges);
    } catch (error) {
      problem = messageOf(error);
    }
  }
  const resident = proxy === undefined ? 0 : residentMb(proxy.pid).nowMb;
  return { contender, rounds, residentMb: resident, stored, problem };
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
