import { dirname } from "node:path";
import type { Issue } from "@headworks/gateway-contract";
import { checkDocument, freshFindings, isError, isNotChecked, type CheckParts } from "#config/check-document.ts";
import { readDocument, type DocumentReading } from "#config/read-document.ts";
import { readConfigFile, readConfigInput } from "#config/watch-file.ts";
import type { Invocation } from "./invocation.ts";

/** A configuration file on the command line; `-` is standard input. */
export interface DocumentFile {
  /** As it was named, for messages. */
  readonly name: string;
  readonly text: string;
  readonly reading: DocumentReading;
}

/** What commands that only look at documents read and write. */
export type Streams = Pick<Invocation, "stdin" | "stdout" | "stderr">;

/** The text of a file, or of standard input for `-`; undefined after the reason was said on standard error. */
export async function documentText(name: string, streams: Streams): Promise<string | undefined> {
  // Opened by its name, standard input can be no socket.
  const outcome =
    name === "-" ? await readConfigInput(streams.stdin) : await readConfigFile(name, { allowsPipes: true });
  if (outcome.ok) return outcome.text;
  streams.stderr.write(`sluice: ${name === "-" ? "standard input" : `the file ${name}`} ${outcome.why}\n`);
  return undefined;
}

/** Reads a file and its structure; undefined after the reason was said on standard error. */
export async function openDocument(name: string, streams: Streams): Promise<DocumentFile | undefined> {
  const text = await documentText(name, streams);
  if (text === undefined) return undefined;
  const directory = name === "-" ? "." : dirname(name);
  return { name, text, reading: readDocument(text, directory) };
}

/** Everything that is wrong with a document, as starting the gateway with it would find, and its warnings. */
export function issuesOf(file: DocumentFile, parts: CheckParts): Issue[] {
  return checkDocument(file.reading, parts, freshFindings(parts.environment));
}

/** `file:line:column: sentence [code]`, as editors and terminals make links of. */
function issueText(name: string, issue: Issue): string {
  const place = issue.line === undefined ? "" : `:${issue.line}:${issue.column ?? 1}`;
  return `${name}${place}: ${issue.message} [${issue.code}]`;
}

/** Writes the warnings among the issues, one a line. */
export function warn(name: string, issues: readonly Issue[], streams: Streams): void {
  tellUnchecked(name, issues, streams);
  for (const issue of issues) {
    if (!isError(issue) && !isNotChecked(issue)) streams.stderr.write(`warning: ${issueText(name, issue)}\n`);
  }
}

/** Writes what only the gateway's machine can check, one a line. */
export function tellUnchecked(name: string, issues: readonly Issue[], streams: Streams): void {
  for (const issue of issues.filter(isNotChecked)) streams.stderr.write(`not checked: ${issueText(name, issue)}\n`);
}

/** Writes the errors among the issues, one a line; answers how many there are. */
export function complain(name: string, issues: readonly Issue[], streams: Streams): number {
  const errors = issues.filter(isError);
  for (const issue of errors) streams.stderr.write(`${issueText(name, issue)}\n`);
  return errors.length;
}
