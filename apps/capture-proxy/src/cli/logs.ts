import { setTimeout as delay } from "node:timers/promises";
import { type Command, Option } from "commander";
import { type LogLines, logsOperations } from "@headworks/capture-contract";
import { ApiFailure } from "@headworks/contract-kit/client";
import { apiAddress, type ApiAddress, callJson } from "./api-connection.ts";
import { CommandFailure, EXIT, type Invocation, type Outcome } from "./invocation.ts";
import { followUntilInterrupted, lineCount, MAX_LINES } from "./following.ts";
import { type GlobalFlags, globalOptions } from "./global-options.ts";
import { visibleText } from "./terminal.ts";

interface TailOptions extends GlobalFlags {
  readonly lines: number;
  readonly follow?: boolean;
}

const POLL_MS = 500;

/** Adds `weir logs tail`. */
export function addLogsTailCommand(group: Command, invocation: Invocation, outcome: Outcome): void {
  const summary = "Print the last lines of the log file, and with -f new ones";
  const command = group
    .command("tail")
    .summary(summary)
    .description(`${summary}. Continues across rotations and restarts of the service; Ctrl+C stops.`)
    .addOption(new Option("-n, --lines <count>", "Number of lines to show first").default(10).argParser(lineCount))
    .option("-f, --follow", "Print new lines as they are written");
  for (const option of globalOptions().filter(({ long }) => long !== "--json")) command.addOption(option);
  command.action(async () => {
    outcome.exitCode = await tail(invocation, command.optsWithGlobals());
  });
}

/** Prints, and follows until interrupted or until the output is closed; resolves to the exit code. */
async function tail(invocation: Invocation, options: TailOptions): Promise<number> {
  const address = apiAddress(options, invocation.environment);
  const first = await lines(address, { limit: Math.max(1, options.lines) });
  print(invocation, options.lines === 0 ? [] : first.lines);
  if (options.follow !== true) return EXIT.ok;
  return await followUntilInterrupted(
    invocation,
    async (signal) => await follow(invocation, address, first.next_cursor, signal),
  );
}

async function follow(invocation: Invocation, address: ApiAddress, from: string, signal: AbortSignal): Promise<void> {
  let cursor = from;
  let isAway = false;
  while (!signal.aborted) {
    let next: LogLines | undefined;
    try {
      next = await lines(address, { limit: MAX_LINES, cursor }, signal);
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
