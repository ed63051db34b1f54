import { dirname } from "node:path";
import type { Issue } from "@headworks/gateway-contract";
import { checkDocument, freshFindings, isError, isNotChecked, type CheckParts } from "#config/check-document.ts";
import { readDocument, type DocumentReading } from "#config/read-document.ts";
import { readConfigFile, readConfigInput } from "#config/watch-file.ts";
import type { Invocation } from "./invocation.ts";

/** A configuration file on the command line; `-` is standard input. */
export interface DocumentFile {
  /** As given on the command line, for messages. */
  readonly name: string;
  readonly text: string;
  readonly reading: DocumentReading;
}

export type Streams = Pick<Invocation, "stdin" | "stdout" | "stderr">;

/** The text of a file, or of standard input for `-`; undefined after printing the error. */
export async function documentText(name: string, streams: Streams): Promise<string | undefined> {
  // Opening /dev/stdin fails if it is a socket.
  const outcome =
    name === "-" ? await readConfigInput(streams.stdin) : await readConfigFile(name, { allowsPipes: true });
  if (outcome.ok) return outcome.text;
  streams.stderr.write(`sluice: ${name === "-" ? "standard input" : `the file ${name}`} ${outcome.why}\n`);
  return undefined;
}

/** Parses a file; undefined after printing the error. */
export async function openDocument(name: string, streams: Streams): Promise<DocumentFile | undefined> {
  const text = await documentText(name, streams);
  if (text === undefined) return undefined;
  const directory = name === "-" ? "." : dirname(name);
  return { name, text, reading: readDocument(text, directory) };
}

/** All errors and warnings that starting the gateway would report. */
export function issuesOf(file: DocumentFile, parts: CheckParts): Issue[] {
  return checkDocument(file.reading, parts, freshFindings(parts.environment));
}

/** `file:line:column: sentence [code]`, which editors and terminals turn into links. */
function issueText(name: string, issue: Issue): string {
  const place = issue.line === undefined ? "" : `:${issue.line}:${issue.column ?? 1}`;
  return `${name}${place}: ${issue.message} [${issue.code}]`;
}

/** Prints warnings, one per line. */
export function warn(name: string, issues: readonly Issue[], streams: Streams): void {
  printUnchecked(name, issues, streams);
  for (const issue of issues) {
    if (!isError(issue) && !isNotChecked(issue)) streams.stderr.write(`warning: ${issueText(name, issue)}\n`);
  }
}

/** Prints issues that only the gateway's machine can check, one per line. */
export function printUnchecked(name: string, issues: readonly Issue[], streams: Streams): void {
  for (const issue of issues.filter(isNotChecked)) streams.stderr.write(`not checked: ${issueText(name, issue)}\n`);
}

/** Prints errors, one per line; returns their number. */
export function complain(name: string, issues: readonly Issue[], streams: Streams): number {
  const errors = issues.filter(isError);
  for (const issue of errors) streams.stderr.write(`${issueText(name, issue)}\n`);
  return errors.length;
}
