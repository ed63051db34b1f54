import { dirname } from "node:path";
import type { Issue, RouteTraffic } from "@headworks/gateway-contract";
import { checkDocument, type CheckParts, freshFindings, isError, isNotChecked } from "#config/check-document.ts";
import { type Change, diffDocuments, planChanges } from "#config/diff-documents.ts";
import { formatDocument } from "#config/format-document.ts";
import { editorSchema } from "#config/json-schema.ts";
import { type DocumentReading, readDocument } from "#config/read-document.ts";
import { readConfigFile, readConfigInput, replaceFile } from "#config/watch-file.ts";
import { contentHash, hashText, toJson } from "#config/write-document.ts";
import { AdminCallError, AdminClient, type AdminOptions } from "./admin-client.ts";
import { EXIT, type Invocation, variable } from "./invocation.ts";
import { visibleText } from "./table.ts";

/** A configuration file on the command line; `-` is standard input. */
interface DocumentFile {
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
  const position = issue.line === undefined ? "" : `:${issue.line}:${issue.column ?? 1}`;
  return `${name}${position}: ${issue.message} [${issue.code}]`;
}

/** Prints warnings, one per line. */
function printWarnings(name: string, issues: readonly Issue[], streams: Streams): void {
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
export function printErrors(name: string, issues: readonly Issue[], streams: Streams): number {
  const errors = issues.filter(isError);
  for (const issue of errors) streams.stderr.write(`${issueText(name, issue)}\n`);
  return errors.length;
}

export interface ValidateOptions {
  /** Prints one JSON object, warnings included, instead of lines. */
  readonly json?: boolean;
}

/**
 * `sluice validate FILE`: runs all checks of a start. Prints `ok: <n> routes` with warnings on standard error, or all
 * errors with their positions; resolves to the exit code.
 */
export async function validate(
  name: string,
  options: ValidateOptions,
  streams: Streams,
  parts: CheckParts,
): Promise<number> {
  const file = await openDocument(name, streams);
  if (file === undefined) return EXIT.failure;
  const issues = issuesOf(file, parts);
  const isGood = !issues.some(isError);
  const { document } = file.reading;
  const routes = document?.routes.length ?? 0;
  if (options.json === true) {
    const hash = isGood && document !== undefined ? hashText(contentHash(file.reading.input ?? {})) : null;
    streams.stdout.write(`${toJson({ ok: isGood, routes, content_hash: hash, issues })}\n`);
  } else if (isGood) {
    printWarnings(name, issues, streams);
    const unchecked = issues.filter(isNotChecked).length;
    const rest = unchecked === 0 ? "" : `; not checked, since missing on this machine: ${unchecked}`;
    streams.stdout.write(`ok: ${routes} routes${rest}\n`);
  } else printErrors(name, issues, streams);
  return isGood ? EXIT.ok : EXIT.failure;
}

export interface LintOptions {
  readonly json?: boolean;
}

/**
 * `sluice lint FILE`: reports valid but probably unintended settings, such as unused upstreams. Resolves to 0 without
 * warnings, 2 with warnings, 1 for a configuration with errors.
 */
export async function lint(name: string, options: LintOptions, streams: Streams, parts: CheckParts): Promise<number> {
  const file = await openDocument(name, streams);
  if (file === undefined) return EXIT.failure;
  const issues = issuesOf(file, parts);
  const hasErrors = issues.some(isError);
  const count = issues.filter((issue) => !isNotChecked(issue)).length;
  const code = hasErrors ? EXIT.failure : count > 0 ? EXIT.warnings : EXIT.ok;
  if (options.json === true) {
    streams.stdout.write(`${toJson({ ok: code === EXIT.ok, issues })}\n`);
    return code;
  }
  if (hasErrors) printErrors(name, issues, streams);
  else {
    printWarnings(name, issues, streams);
    if (count > 0) streams.stderr.write(`${count} ${count === 1 ? "warning" : "warnings"}\n`);
  }
  return code;
}

export interface FmtOptions {
  /** Only checks; resolves to 1 if the file is not formatted. */
  readonly check?: boolean;
}

/**
 * `sluice fmt FILE`: formats a configuration in place, atomically; comments are kept. With `-`, from standard input to
 * standard output. Resolves to 1 if it cannot be read or written.
 */
export async function fmt(name: string, options: FmtOptions, streams: Streams): Promise<number> {
  const file = await openDocument(name, streams);
  if (file === undefined) return EXIT.failure;
  const formatted = formatDocument(file.text);
  if (formatted === undefined) {
    const syntax = file.reading.issues.filter(({ code }) => code === "syntax");
    if (printErrors(name, syntax, streams) === 0) {
      streams.stderr.write(`sluice: ${name} cannot be formatted without changing its meaning\n`);
    }
    return EXIT.failure;
  }
  if (options.check === true) {
    if (formatted === file.text) return EXIT.ok;
    streams.stderr.write(`sluice: ${name} is not formatted; run sluice fmt ${name}\n`);
    return EXIT.failure;
  }
  if (name === "-") streams.stdout.write(formatted);
  else if (formatted !== file.text) return await replace(name, formatted, streams);
  return EXIT.ok;
}

async function replace(name: string, text: string, streams: Streams): Promise<number> {
  try {
    await replaceFile(name, text);
    return EXIT.ok;
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "unknown error";
    streams.stderr.write(`sluice: the file ${name} cannot be written (${code})\n`);
    return EXIT.failure;
  }
}

export interface DiffOptions {
  readonly json?: boolean;
}

const MARKS = { added: "+", removed: "-", changed: "~", moved: ">" } as const;

/** `sluice diff OLD NEW`: the changed paths, without values. Resolves to 0, or 1 if unreadable. */
export async function diff(before: string, after: string, options: DiffOptions, streams: Streams): Promise<number> {
  const [old, young] = [await openReadable(before, streams), await openReadable(after, streams)];
  if (young?.reading.document === undefined || old?.reading.document === undefined) return EXIT.failure;
  const changes = diffDocuments(old.reading.document, young.reading.document);
  if (options.json === true) streams.stdout.write(`${toJson({ changes })}\n`);
  else if (changes.length === 0) streams.stdout.write("no differences\n");
  else streams.stdout.write(changes.map((change) => `${changeText(change)}\n`).join(""));
  return EXIT.ok;
}

/** Checks the structure only: files and secrets of another machine need not exist here. */
async function openReadable(name: string, streams: Streams): Promise<DocumentFile | undefined> {
  const file = await openDocument(name, streams);
  if (file === undefined || !file.reading.issues.some(isError)) return file;
  printErrors(name, file.reading.issues, streams);
  return undefined;
}

/** `~ route users-v1 (/match/path/value)`. */
function changeText({ kind, name, change, pointers }: Change): string {
  const paths = pointers.length === 0 ? "" : ` (${pointers.join(", ")})`;
  return `${MARKS[change]} ${kind}${name === "" ? "" : ` ${name}`}${paths}`;
}

export interface PlanOptions extends AdminOptions {
  readonly json?: boolean;
}

/**
 * `sluice plan OLD NEW`: shows the changes between two configurations and the affected routes, consumers, upstreams and
 * listeners; with a running gateway, also the recent requests affected. Resolves to 1 if the new one has errors or the
 * old one is unreadable.
 */
export async function plan(
  before: string,
  after: string,
  options: PlanOptions,
  streams: Streams,
  parts: CheckParts,
): Promise<number> {
  const old = await openDocument(before, streams);
  const young = await openDocument(after, streams);
  const oldDocument = old?.reading.document;
  const youngDocument = young?.reading.document;
  if (old !== undefined && (printErrors(before, old.reading.issues, streams) > 0 || oldDocument === undefined)) {
    return EXIT.failure;
  }
  if (young === undefined || old === undefined) return EXIT.failure;
  const issues = issuesOf(young, parts);
  if (printErrors(after, issues, streams) > 0 || youngDocument === undefined) return EXIT.failure;
  printUnchecked(after, issues, streams);
  const planned = planChanges(oldDocument, youngDocument);
  const traffic = await recentTraffic(options, parts.environment);
  if (typeof traffic === "string") streams.stderr.write(`sluice: The traffic of routes is not shown: ${traffic}\n`);
  if (options.json === true) {
    const warnings = issues.filter((issue) => !isError(issue));
    const known = typeof traffic === "object" ? { traffic } : {};
    streams.stdout.write(`${toJson({ ...planned, warnings, ...known })}\n`);
    return EXIT.ok;
  }
  const lines = planned.changes.map(changeText);
  for (const [title, names] of [
    ["affected routes", planned.routes],
    ["affected consumers", planned.consumers],
    ["changed upstreams", planned.upstreams],
    ["listeners whose connections will be closed", planned.rebound],
  ] as const) {
    if (names.length > 0) lines.push(`${title}: ${names.join(", ")}`);
  }
  if (typeof traffic === "object" && planned.routes.length > 0) lines.push(shareText(planned.routes, traffic));
  streams.stdout.write(lines.length === 0 ? "no differences\n" : `${lines.join("\n")}\n`);
  return EXIT.ok;
}

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Recent traffic of the running gateway; an error message if it cannot be reached, undefined without `--admin` and
 * `GATEWAY_ADMIN`: the documents may belong to another gateway.
 */
async function recentTraffic(
  options: AdminOptions,
  environment: Environment,
): Promise<RouteTraffic | string | undefined> {
  if (options.admin === undefined && variable(environment, "GATEWAY_ADMIN") === undefined) return undefined;
  try {
    const { text } = await new AdminClient(options, environment).call({ path: "/traffic" });
    return JSON.parse(text) as RouteTraffic;
  } catch (error) {
    if (error instanceof AdminCallError) return error.message;
    if (error instanceof SyntaxError) return "The response is not from a Sluice admin API";
    throw error;
  }
}

/** Maximum number of routes in a line. */
const MAX_ROUTES = 20;

/** `1204 requests in 3 min: home 62.5 %, more 0 %` for these routes, busiest first. */
export function shareText(names: readonly string[], { span_seconds: seconds, requests, routes }: RouteTraffic): string {
  const span = seconds < 60 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
  if (requests === 0) return `no requests in ${span}`;
  const shares = new Map(routes.map(({ name, share }) => [name, share]));
  const shown = names
    .map((name) => ({ name, share: shares.get(name) ?? 0 }))
    .toSorted((a, b) => b.share - a.share)
    .map(({ name, share }) => `${visibleText(name)} ${Math.round(share * 1000) / 10} %`);
  const more = shown.length > MAX_ROUTES ? `, ${shown.length - MAX_ROUTES} more` : "";
  return `${requests} ${requests === 1 ? "request" : "requests"} in ${span}: ${shown.slice(0, MAX_ROUTES).join(", ")}${more}`;
}

/** `sluice schema`: prints the JSON Schema of configurations for editors. */
export async function schema(streams: Streams): Promise<number> {
  streams.stdout.write(`${toJson(editorSchema(), 2)}\n`);
  return await Promise.resolve(EXIT.ok);
}
