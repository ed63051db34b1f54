import { setTimeout as delay } from "node:timers/promises";
import { type Command, Option } from "commander";
import {
  REPLAY_LIMITS,
  type ReplayBatch,
  replayOperations,
  type ReplayOrder,
  type ReplayResult,
  type ResponseData,
} from "@headworks/capture-contract";
import { ApiFailure } from "@headworks/contract-kit/client";
import { utf8Reading } from "@headworks/http-fields";
import { apiAddress, type ApiAddress, callJson } from "./api-connection.ts";
import { entryId } from "./entry-names.ts";
import { CommandFailure, EXIT, FAIL_ON_EXITS, type Invocation, type Outcome } from "./invocation.ts";
import { type GlobalFlags, globalOptions } from "./global-options.ts";
import { presentDiff } from "./diff.ts";
import { durationText, renderPairs, sizeText } from "./table.ts";
import {
  addDiffOptions,
  addModificationOptions,
  type DiffFlags,
  diffOptionsOf,
  type ModificationFlags,
  modificationsOf,
  wholeNumber,
} from "./replay-options.ts";
import { type Terminal, visibleText, writeJson } from "./terminal.ts";

const BAR_COLUMNS = 40;

type FailOn = "change" | "status" | "error";
const FIRST_POLL_MS = 50;
const LAST_POLL_MS = 1000;

/** Adds `weir replay run` and `weir replay batch`. */
export function addReplayCommands(group: Command, invocation: Invocation, outcome: Outcome): void {
  addRun(group, invocation, outcome);
  addBatch(group, invocation, outcome);
}

function addRun(group: Command, invocation: Invocation, outcome: Outcome): void {
  const summary = "Resend a saved request, or that of a captured entry";
  const command = group.command("run").summary(summary).description(`${summary}, and show the response.`);
  command.argument("<id>", "The id of a saved request, or an entry: its number (107), `last` or id");
  addModificationOptions(command);
  command.option("--diff", "Compare the response with that of the original entry");
  addDiffOptions(command);
  command.addOption(
    new Option(
      "--fail-on <what>",
      "Exit with 5 if the response differs from the original (change), its status does (status), or the request failed or got a status of 400 or above (error)",
    ).choices(["change", "status", "error"]),
  );
  for (const option of globalOptions()) command.addOption(option);
  command.addHelpText("after", FAIL_ON_EXITS);
  command.action(async (id: string) => {
    const flags = command.optsWithGlobals<
      GlobalFlags & ModificationFlags & DiffFlags & { diff?: boolean; failOn?: FailOn }
    >();
    const compares = flags.diff === true || flags.failOn === "change" || flags.failOn === "status";
    const order: ReplayOrder = { ...modificationsOf(flags), ...(compares ? { diff: diffOptionsOf(flags) } : {}) };
    const address = apiAddress(flags, invocation.environment);
    const params = { id: await entryId(address, id) };
    const request = { params, query: { decompressed: "true" }, body: order };
    const { text, value } = await callJson(address, replayOperations.executeReplay, request);
    const result = value as ReplayResult;
    const { stdout } = invocation;
    if (flags.json === true) writeJson(stdout, text);
    else stdout.write(presentReplay(result, stdout));
    if (isFailure(result, flags.failOn)) outcome.exitCode = EXIT.differs;
  });
}

function isFailure({ response, diff }: ReplayResult, failOn: FailOn | undefined): boolean {
  switch (failOn) {
    case "change":
      return diff?.response_same !== true;
    case "status":
      return diff === undefined || diff.status !== null || diff.failure !== null;
    case "error":
      return response === null || response.status_code >= 400;
    case undefined:
      return false;
  }
}

function addBatch(group: Command, invocation: Invocation, outcome: Outcome): void {
  const summary = "Send a request many times and summarize the responses";
  const command = group.command("batch").summary(summary).description(`${summary}. Ctrl+C cancels.`);
  const { iterations, concurrency, delayMs } = REPLAY_LIMITS;
  command
    .argument("<id>", "The id of a saved request, or an entry: its number (107), `last` or id")
    .addOption(
      new Option("-n, --iterations <count>", "Number of requests").default(1).argParser(wholeNumber(1, iterations)),
    )
    .addOption(
      new Option("-c, --concurrency <count>", "Number of concurrent requests")
        .default(1)
        .argParser(wholeNumber(1, concurrency)),
    )
    .addOption(
      new Option("--delay-ms <ms>", "Delay before each request after the first ones").argParser(
        wholeNumber(0, delayMs),
      ),
    );
  addModificationOptions(command);
  command.addOption(new Option("--fail-on <what>", "Exit with 5 if a request got no response").choices(["error"]));
  for (const option of globalOptions()) command.addOption(option);
  command.addHelpText("after", FAIL_ON_EXITS);
  command.action(async (id: string) => {
    const flags = command.optsWithGlobals<GlobalFlags & ModificationFlags & BatchFlags>();
    const address = apiAddress(flags, invocation.environment);
    const order = {
      ...modificationsOf(flags),
      iterations: flags.iterations,
      concurrency: flags.concurrency,
      delay_ms: flags.delayMs ?? null,
      wait: false,
    };
    const params = { id: await entryId(address, id) };
    const begun = await callJson(address, replayOperations.executeBatch, { params, body: order });
    const batch = await followed(address, (begun.value as { id: string }).id, invocation);
    const { stdout } = invocation;
    if (flags.json === true) writeJson(stdout, JSON.stringify(batch));
    else stdout.write(presentBatch(batch, stdout));
    if (batch.state !== "done") throw new CommandFailure(EXIT.failure, `The batch was ${batch.state}`);
    if (flags.failOn === "error" && batch.failed > 0) outcome.exitCode = EXIT.differs;
  });
}

interface BatchFlags {
  readonly iterations: number;
  readonly concurrency: number;
  readonly delayMs?: number;
  readonly failOn?: "error";
}

/** Polls a batch until it is over; an interrupt cancels it. */
async function followed(address: ApiAddress, id: string, { stderr }: Invocation): Promise<ReplayBatch> {
  let isCancelling = false;
  const onInterrupt = (): void => {
    isCancelling = true;
  };
  process.once("SIGINT", onInterrupt).once("SIGTERM", onInterrupt);
  try {
    for (let waitMs = FIRST_POLL_MS; ; waitMs = Math.min(waitMs * 1.5, LAST_POLL_MS)) {
      if (isCancelling) await cancel(address, id);
      isCancelling = false;
      const input = { params: { id }, query: { results_limit: 0 } };
      const { value } = await callJson(address, replayOperations.getBatch, input);
      const { results: _none, ...batch } = value as ReplayBatch & { results: unknown };
      if (stderr.isTty) stderr.write(`\r\x1b[K${batch.state === "running" ? progressOf(batch) : ""}`);
      if (batch.state !== "running") return batch;
      await delay(waitMs);
    }
  } finally {
    process.off("SIGINT", onInterrupt).off("SIGTERM", onInterrupt);
  }
}

async function cancel(address: ApiAddress, id: string): Promise<void> {
  try {
    await callJson(address, replayOperations.cancelBatch, { params: { id } });
  } catch (error) {
    // The batch has ended meanwhile.
    if (!(error instanceof ApiFailure && error.status === 409)) throw error;
  }
}

function progressOf({ total, iterations, failed }: ReplayBatch): string {
  const share = `${String(Math.floor((100 * total) / iterations)).padStart(3)} %  ${total} of ${iterations}`;
  return failed > 0 ? `${share}, ${failed} failed` : share;
}

/** A replay for people: its outcome, then the differences if it was compared, otherwise the response body. */
function presentReplay(result: ReplayResult, terminal: Terminal): string {
  const { response, redirects } = result;
  const pairs: [string, string][] = [
    ["request", `${result.request.method} ${result.request.url}`],
    ...redirects.map(({ status_code: status, url }): [string, string] => ["redirect", `${status} from ${url}`]),
    ["response", response === null ? `none: ${result.error ?? ""}` : statusText(response)],
    ["duration", durationText(result.duration_ms)],
    ["size", response === null ? "" : sizeText(response.body_size)],
    ["entry", result.entry_id ?? "not captured"],
  ];
  const head = renderPairs(
    pairs.filter(([, value]) => value !== ""),
    terminal,
  );
  if (result.diff) return `${head}\n${presentDiff(result.diff, terminal)}`;
  const body = response?.body ?? null;
  if (body === null) return head;
  const isBytes = response?.body_encoding === "base64";
  return `${head}\n${isBytes ? terminal.style("dim", "The body is not text: see --json") : shownBody(body, terminal)}\n`;
}

function statusText({ status_code: status, status_message: message }: ResponseData): string {
  return `${status} ${utf8Reading(message ?? "") ?? message ?? ""}`.trim();
}

function shownBody(body: string, terminal: Terminal): string {
  return terminal.isTty ? visibleText(body.replaceAll("\r\n", "\n"), true) : body;
}

/** A batch for people: the numbers, what failed, and how durations spread. */
export function presentBatch(batch: ReplayBatch, terminal: Terminal): string {
  const statuses = Object.entries(batch.statuses).map(([status, count]) => `${status} (${count})`);
  const pairs: [string, string][] = [
    ["batch", batch.id],
    ["sent", `${batch.total} of ${batch.iterations}, ${batch.succeeded} with a response, ${batch.failed} failed`],
    ["statuses", statuses.join(", ")],
    ["fastest", durationText(batch.min_ms)],
    ["average", durationText(batch.avg_ms)],
    ["p50", durationText(batch.p50_ms)],
    ["p90", durationText(batch.p90_ms)],
    ["p95", durationText(batch.p95_ms)],
    ["p99", durationText(batch.p99_ms)],
    ["slowest", durationText(batch.max_ms)],
    ...batch.errors.map(({ code, message, count }): [string, string] => [`${code} (${count})`, message]),
  ];
  const shown = pairs.filter(([, value]) => value !== "");
  return renderPairs([...shown, ...bars(batch)], terminal);
}

function bars({ histogram }: ReplayBatch): [string, string][] {
  const max = Math.max(0, ...histogram.map(({ count }) => count));
  if (histogram.length < 2) return [];
  return histogram.map(({ to_ms: to, count }) => [
    `≤ ${durationText(to)}`,
    `${"█".repeat(Math.ceil((count / max) * BAR_COLUMNS))} ${count}`.trim(),
  ]);
}
