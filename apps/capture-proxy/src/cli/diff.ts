import { type Command, Option } from "commander";
import {
  type DiffOrder,
  type EntryDiff,
  replayOperations,
  type SessionDiff,
  type SessionDiffOrder,
  type SessionDiffRow,
} from "@headworks/capture-contract";
import { apiAddress, callJson } from "./api-connection.ts";
import { entryId } from "./entry-names.ts";
import { CommandFailure, EXIT, FAIL_ON_EXITS } from "./exit-codes.ts";
import { type GlobalFlags, globalOptions } from "./global-options.ts";
import type { Invocation, Outcome } from "./invocation.ts";
import { presentDiff } from "./present-diff.ts";
import { addDiffOptions, type DiffFlags, diffOptionsOf, repeated } from "./replay-options.ts";
import { type Terminal, visibleText, writeJson } from "./terminal.ts";

/** More than these are for programs; `--json` has them. */
const MAX_ROWS = 200;

/** Fills `weir diff`. */
export function fillDiffCommand(command: Command, invocation: Invocation, outcome: Outcome): void {
  command
    .argument(
      "<left>",
      "An entry (107, last, an id) or a replay's id; alone, a replay that is compared with its original",
    )
    .argument("[right]", "Another one")
    .option("--sessions", "The ids are those of two sessions, which are compared request by request")
    .option("--q <query>", "Of sessions: only entries that it finds");
  command.addOption(
    repeated(
      "--ignore-query <name>",
      "Of sessions: a parameter that does not tell requests apart, `*` for any characters; may be repeated",
      String,
    ),
  );
  addDiffOptions(command);
  command.addOption(
    new Option(
      "--fail-on <what>",
      "Exit with 5 when the answers differ (change), or their status does (status)",
    ).choices(["change", "status"]),
  );
  for (const option of globalOptions()) command.addOption(option);
  command.addHelpText("after", FAIL_ON_EXITS);
  command.action(async (left: string, right: string | undefined) => {
    const flags = command.optsWithGlobals<DiffCommandFlags>();
    const compared = flags.sessions === true ? compareSessions : compareEntries;
    if (await compared(left, right, flags, invocation)) outcome.exitCode = EXIT.differs;
  });
}

interface DiffCommandFlags extends GlobalFlags, DiffFlags {
  readonly failOn?: "change" | "status";
  readonly sessions?: boolean;
  readonly q?: string;
  readonly ignoreQuery?: readonly string[];
}

/** Shows how two entries differ; true when that is what the exit code is asked to tell. */
async function compareEntries(
  left: string,
  right: string | undefined,
  flags: DiffCommandFlags,
  { environment, stdout }: Invocation,
): Promise<boolean> {
  const address = apiAddress(flags, environment);
  const [first, second] = await Promise.all([left, right].map(async (name) => name && (await entryId(address, name))));
  const ids = second === undefined ? { right: first ?? left } : { left: first ?? left, right: second };
  const order: DiffOrder = { ...ids, ...diffOptionsOf(flags) };
  const { text, value } = await callJson(address, replayOperations.diffEntries, { body: order });
  const diff = value as EntryDiff;
  if (flags.json === true) writeJson(stdout, text);
  else stdout.write(presentDiff(diff, stdout));
  const hasStatusChanged = diff.status !== null || diff.failure !== null;
  return flags.failOn === "change" ? !diff.response_same : flags.failOn === "status" && hasStatusChanged;
}

/** The same for two sessions. */
async function compareSessions(
  left: string,
  right: string | undefined,
  flags: DiffCommandFlags,
  { environment, stdout }: Invocation,
): Promise<boolean> {
  if (right === undefined) throw new CommandFailure(EXIT.usage, "Two sessions are compared: give both ids");
  const order: SessionDiffOrder = {
    left,
    right,
    ...(flags.q === undefined ? {} : { q: flags.q }),
    ...(flags.ignoreQuery === undefined ? {} : { ignore_query: [...flags.ignoreQuery] }),
    ...diffOptionsOf(flags),
  };
  const address = apiAddress(flags, environment);
  const { text, value } = await callJson(address, replayOperations.diffSessions, { body: order });
  const diff = value as SessionDiff;
  if (flags.json === true) writeJson(stdout, text);
  else stdout.write(presentSessionDiff(diff, stdout));
  const isStatusChanged = diff.changed.some(({ differs }) => differs.includes("status") || differs.includes("failure"));
  return flags.failOn === "change" ? !diff.same : flags.failOn === "status" && isStatusChanged;
}

/** A comparison of two sessions for people: what only one has, and which answers became others. */
function presentSessionDiff(diff: SessionDiff, terminal: Terminal): string {
  const lines: string[] = [];
  for (const row of diff.only_left.slice(0, MAX_ROWS)) lines.push(terminal.style("red", `- ${rowText(row)}`));
  for (const row of diff.only_right.slice(0, MAX_ROWS)) lines.push(terminal.style("green", `+ ${rowText(row)}`));
  for (const { left, right, differs } of diff.changed.slice(0, MAX_ROWS)) {
    const responses =
      responseText(left) === responseText(right)
        ? responseText(left)
        : `${responseText(left)} → ${responseText(right)}`;
    lines.push(
      terminal.style("yellow", visibleText(`~ ${left.method} ${left.url}  ${responses}  ${differs.join(", ")}`)),
    );
    lines.push(terminal.style("dim", `  weir diff ${left.id} ${right.id}`));
  }
  if (Math.max(diff.only_left_count, diff.only_right_count, diff.changed_count) > MAX_ROWS) {
    lines.push(terminal.style("dim", "… more, see --json"));
  }
  const counts = `${diff.same_count} alike, ${diff.changed_count} changed, ${diff.only_left_count} only left, ${diff.only_right_count} only right`;
  const rest = diff.not_compared_count === 0 ? "" : `, ${diff.not_compared_count} not compared`;
  lines.push(terminal.style(diff.same ? "green" : "bold", `${counts}${rest}`));
  return `${lines.join("\n")}\n`;
}

function rowText(row: SessionDiffRow): string {
  return visibleText(`${row.method} ${row.url}  ${responseText(row)}`);
}

function responseText({ status_code, failure_code }: SessionDiffRow): string {
  return failure_code ?? String(status_code ?? "no answer");
}
