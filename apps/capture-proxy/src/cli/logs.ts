import { constants } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import type { Command } from "commander";
import { Option } from "commander";
import { logsOperations } from "@headworks/capture-contract";
import type { LogLines } from "@headworks/capture-contract";
import { ApiFailure } from "@headworks/contract-kit/client";
import { apiAddress, callJson } from "./api-connection.ts";
import type { ApiAddress } from "./api-connection.ts";
import { CommandFailure, EXIT } from "./exit-codes.ts";
import { globalOptions } from "./global-options.ts";
import type { Invocation, Outcome } from "./invocation.ts";
import { visibleText } from "./terminal.ts";

// Tested by ../../test/cli-logs.test.ts

interface TailOptions {
  readonly lines: number;
  readonly follow?: boolean;
  readonly apiUrl?: string;
  readonly timeout?: string;
}

const POLL_MS = 500;
const MOST_AT_ONCE = 1000;

/** Adds `weir logs tail`. */
export function addLogsTailCommand(group: Command, invocation: Invocation, outcome: Outcome): void {
  const summary = "Print the last lines of the log file, and with -f what follows";
  const command = group
    .command("tail")
    .summary(summary)
    .description(`${summary}. Following goes on over rotations and restarts; Ctrl+C ends it.`)
    .addOption(new Option("-n, --lines <count>", "How many lines to show first").default(10).argParser(count))
    .option("-f, --follow", "Go on with new lines as they come");
  for (const option of globalOptions().filter(({ long }) => long !== "--json")) command.addOption(option);
  command.action(async () => {
    outcome.exitCode = await tail(invocation, command.optsWithGlobals());
  });
}

function count(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 0 || value > MOST_AT_ONCE) {
    throw new CommandFailure(EXIT.usage, `--lines takes a number from 0 to ${MOST_AT_ONCE}`);
  }
  return value;
}

/** Prints, and follows until it is interrupted or nobody reads; resolves to the exit code. */
async function tail(invocation: Invocation, options: TailOptions): Promise<number> {
  const address = apiAddress(options, invocation.environment);
  const first = await lines(address, { limit: Math.max(1, options.lines) });
  print(invocation, options.lines === 0 ? [] : first.lines);
  if (options.follow !== true) return EXIT.ok;
  const stop = new AbortController();
  let interruptedBy: NodeJS.Signals | undefined;
  const onInterrupt = (signal: NodeJS.Signals): void => {
    interruptedBy = signal;
    stop.abort();
  };
  process.once("SIGINT", onInterrupt).once("SIGTERM", onInterrupt);
  invocation.outputGone.addEventListener("abort", () => stop.abort(), { once: true });
  await follow(invocation, address, first.next_cursor, stop.signal);
  process.off("SIGINT", onInterrupt).off("SIGTERM", onInterrupt);
  return interruptedBy === undefined ? EXIT.ok : EXIT.signalBase + constants.signals[interruptedBy];
}

async function follow(invocation: Invocation, address: ApiAddress, from: string, signal: AbortSignal): Promise<void> {
  let cursor = from;
  let isAway = false;
  while (!signal.aborted) {
    let next: LogLines | undefined;
    try {
      next = await lines(address, { limit: MOST_AT_ONCE, cursor }, signal);
      isAway = false;
    } catch (error) {
      if (signal.aborted) return;
      // A service that restarts comes back with the same file.
      if (!(error instanceof ApiFailure) && !(error instanceof CommandFailure)) throw error;
      if (!isAway) invocation.stderr.write(`weir: ${visibleText(error.message)}; trying again\n`);
      isAway = true;
    }
    if (next?.missed === true) invocation.stderr.write("weir: some lines are missing here\n");
    print(invocation, next?.lines ?? []);
    const isMore = next !== undefined && next.next_cursor !== cursor;
    cursor = next?.next_cursor ?? cursor;
    if (!isMore) await delay(POLL_MS, undefined, { signal }).catch(() => undefined);
  }
}

async function lines(
  address: ApiAddress,
  query: { readonly limit: number; readonly cursor?: string },
  signal?: AbortSignal,
): Promise<LogLines> {
  const { value } = await callJson(address, logsOperations.tailLogs, {
    query,
    ...(signal === undefined ? {} : { signal }),
  });
  return value as LogLines;
}

function print({ stdout }: Invocation, all: readonly string[]): void {
  if (all.length > 0) stdout.write(all.map((line) => `${stdout.isTty ? visibleText(line) : line}\n`).join(""));
}
