import { Option } from "commander";
import type { Command } from "commander";
import { replayOperations } from "@headworks/capture-contract";
import type { DiffOrder, EntryDiff, SessionDiff, SessionDiffOrder } from "@headworks/capture-contract";
import { apiAddress, callJson } from "./api-connection.ts";
import { entryId } from "./entry-names.ts";
import { CommandFailure, EXIT, FAIL_ON_EXITS } from "./exit-codes.ts";
import { globalOptions } from "./global-options.ts";
import type { GlobalFlags } from "./global-options.ts";
import type { Invocation, Outcome } from "./invocation.ts";
import { presentDiff } from "./present-diff.ts";
import { presentSessionDiff } from "./present-session-diff.ts";
import { addDiffOptions, diffOptionsOf, repeated } from "./replay-options.ts";
import type { DiffFlags } from "./replay-options.ts";
import { writeJson } from "./terminal.ts";

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
