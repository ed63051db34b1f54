import { type Command, Option } from "commander";
import {
  type BodyDiff,
  type DiffOrder,
  type EntryDiff,
  replayOperations,
  type SessionDiff,
  type SessionDiffOrder,
  type SessionDiffRow,
} from "@headworks/capture-contract";
import { utf8Reading } from "@headworks/http-fields";
import { apiAddress, callJson } from "./api-connection.ts";
import { entryId } from "./entry-names.ts";
import { type GlobalFlags, globalOptions } from "./global-options.ts";
import { CommandFailure, EXIT, FAIL_ON_EXITS, type Invocation, type Outcome } from "./invocation.ts";
import { durationText, sizeText } from "./table.ts";
import { addDiffOptions, type DiffFlags, diffOptionsOf, repeated } from "./replay-options.ts";
import { type Terminal, visibleText, writeJson } from "./terminal.ts";

/** Limit of the output for people; `--json` has all. */
const MAX_ROWS = 200;

/** Fills `weir diff`. */
export function fillDiffCommand(command: Command, invocation: Invocation, outcome: Outcome): void {
  command
    .argument("<left>", "An entry (107, last, an id) or a replay; alone, a replay to compare with its original")
    .argument("[right]", "The entry or replay to compare it with")
    .option("--sessions", "Compare two sessions, request by request")
    .option("--q <query>", "With --sessions: only entries that match this query");
  command.addOption(
    repeated(
      "--ignore-query <name>",
      "With --sessions: a query parameter to ignore, `*` for any characters; repeatable",
      String,
    ),
  );
  addDiffOptions(command);
  command.addOption(
    new Option(
      "--fail-on <what>",
      "Exit with 5 if the responses differ (change) or their status does (status)",
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

/** Shows how two entries differ; true if the condition of `--fail-on` is met. */
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
  if (right === undefined) throw new CommandFailure(EXIT.usage, "--sessions needs two ids");
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

/** A comparison of two sessions for people: requests in only one of them, and changed responses. */
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
  const counts = `${diff.same_count} identical, ${diff.changed_count} changed, ${diff.only_left_count} only left, ${diff.only_right_count} only right`;
  const rest = diff.not_compared_count === 0 ? "" : `, ${diff.not_compared_count} not compared`;
  lines.push(terminal.style(diff.same ? "green" : "bold", `${counts}${rest}`));
  return `${lines.join("\n")}\n`;
}

function rowText(row: SessionDiffRow): string {
  return visibleText(`${row.method} ${row.url}  ${responseText(row)}`);
}

function responseText({ status_code, failure_code }: SessionDiffRow): string {
  return failure_code ?? String(status_code ?? "no response");
}

const MAX_VALUE_CHARACTERS = 200;

/** Limit of the output for people; `--json` has all. */
const MAX_CHANGES = 100;

/** A comparison for people: only the differences, line by line. */
export function presentDiff(diff: EntryDiff, terminal: Terminal): string {
  const lines = new Lines(terminal);
  lines.change("method", diff.method);
  lines.change("url", diff.url);
  lines.headers("request field", diff.request_headers.changed);
  lines.body("request body", diff.request_body);
  lines.change("status", diff.status);
  lines.change("failure", diff.failure);
  lines.headers("field", diff.response_headers.changed);
  lines.body("body", diff.response_body);
  const verdict = hasIgnored(diff) ? "Identical except for ignored differences" : "Identical";
  if (diff.same) lines.add(terminal.style("green", verdict));
  const ignored = [...diff.request_headers.ignored, ...diff.response_headers.ignored].map(({ name }) => name);
  if (ignored.length > 0) lines.add(terminal.style("dim", visibleText(`ignored: ${[...new Set(ignored)].join(", ")}`)));
  const { duration } = diff.timings;
  if (duration?.left !== null && duration?.right !== null && duration !== undefined) {
    lines.add(terminal.style("dim", `duration: ${durationText(duration.left)} → ${durationText(duration.right)}`));
  }
  return lines.text;
}

/** Whether there are ignored differences. */
function hasIgnored({ request_headers, response_headers, request_body, response_body }: EntryDiff): boolean {
  if (request_headers.ignored.length + response_headers.ignored.length > 0) return true;
  return [request_body, response_body].some(({ ignored_changes: changes = 0 }) => changes > 0);
}

class Lines {
  text = "";
  readonly #terminal: Terminal;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  add(line: string): void {
    this.text += `${line}\n`;
  }

  /** Writes a changed value. */
  change(name: string, change: EntryDiff["status"]): void {
    if (change === null) return;
    this.#removed(`${name}: ${change.left ?? "none"}`);
    this.#added(`${name}: ${change.right ?? "none"}`);
  }

  headers(kind: string, changes: EntryDiff["request_headers"]["changed"]): void {
    for (const { name, left, right } of changes) {
      for (const value of left ?? []) this.#removed(`${kind} ${name}: ${utf8Reading(value) ?? value}`);
      for (const value of right ?? []) this.#added(`${kind} ${name}: ${utf8Reading(value) ?? value}`);
    }
  }

  body(kind: string, diff: BodyDiff): void {
    if (diff.kind === "none" || diff.kind === "same") return;
    const ignored = diff.ignored_changes ?? 0;
    if (diff.kind === "json" && diff.changes?.length === 0) return;
    const sizes = `${sizeText(diff.left_size) || "none"} → ${sizeText(diff.right_size) || "none"}`;
    const note = ignored > 0 ? `, ${ignored} ignored` : "";
    this.add(this.#terminal.style("bold", `${kind} differs (${diff.kind}, ${sizes}${note})`));
    if (diff.reason !== undefined) this.add(visibleText(diff.reason));
    for (const change of diff.changes?.slice(0, MAX_CHANGES) ?? []) {
      if (change.op !== "add") this.#removed(`${change.path || "/"}: ${shortValue(change.left)}`);
      if (change.op !== "remove") this.#added(`${change.path || "/"}: ${shortValue(change.right)}`);
    }
    for (const part of diff.parts?.slice(0, MAX_CHANGES) ?? []) this.#part(part);
    if (diff.kind === "binary") {
      this.#removed(`sha256 ${diff.left_sha256 ?? "unknown"}`);
      this.#added(`sha256 ${diff.right_sha256 ?? "unknown"}`);
    }
    const max = Math.max(diff.changes?.length ?? 0, diff.parts?.length ?? 0);
    if (diff.truncated === true || max > MAX_CHANGES) this.add(this.#terminal.style("dim", "… more, see --json"));
  }

  #part({ kind, line_count: count, lines }: NonNullable<BodyDiff["parts"]>[number]): void {
    if (kind === "same" && lines.length === 0) {
      this.add(this.#terminal.style("dim", `  … ${count} ${count === 1 ? "line" : "lines"}`));
    }
    for (const line of lines) {
      const shown = short(line.replace(/\r$/u, ""));
      if (kind === "removed") this.#removed(shown);
      else if (kind === "added") this.#added(shown);
      else this.add(`  ${visibleText(shown)}`);
    }
  }

  #removed(text: string): void {
    this.add(this.#terminal.style("red", `- ${visibleText(text)}`));
  }

  #added(text: string): void {
    this.add(this.#terminal.style("green", `+ ${visibleText(text)}`));
  }
}

function shortValue(value: unknown): string {
  return short(JSON.stringify(value) ?? "");
}

function short(text: string): string {
  return text.length <= MAX_VALUE_CHARACTERS ? text : `${text.slice(0, MAX_VALUE_CHARACTERS)}…`;
}
