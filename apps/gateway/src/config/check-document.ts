import { type ConfigDocument, DEFAULT_ADMIN_BIND, type Issue, type IssueCode } from "@headworks/gateway-contract";
import { isLoopback, isUnspecified, parseNetwork } from "@headworks/host-patterns";
import { wireText } from "@headworks/http1";
import type { CheckScope, Clock, IssueReport } from "#slice.ts";
import { annotatedFields } from "./annotated-fields.ts";
import { checkEntities } from "./check-entities.ts";
import { checkListeners, parseBind } from "./check-listeners.ts";
import { checkReferences } from "./check-references.ts";
import { FileReader } from "./file-reader.ts";
import { networkForm } from "./other-gateways.ts";
import { withoutPlaceholders } from "./placeholders.ts";
import type { FieldPath } from "./pointer.ts";
import { type DocumentReading, documentSchema, inTextOrder, type SourcePositions } from "./read-document.ts";
import { SecretResolver } from "./secrets.ts";
import { atOnce, type Steps } from "./steps.ts";
import { named } from "./structure.ts";
import { MAX_ISSUES } from "./yaml-source.ts";

/** Collects up to MAX_ISSUES issues per severity and counts the rest, one per code and path. */
class IssueCollector implements IssueReport {
  readonly issues: Issue[] = [];
  readonly unlisted: IssueTotals = { error: 0, warning: 0 };
  readonly #listed: IssueTotals = { error: 0, warning: 0 };
  readonly #positions: SourcePositions;
  readonly #seen = new Set<string>();

  constructor(positions: SourcePositions) {
    this.#positions = positions;
  }

  error(code: IssueCode, fieldPath: FieldPath, message: string): void {
    this.#add(code, fieldPath, message, "error");
  }

  warning(code: IssueCode, fieldPath: FieldPath, message: string): void {
    this.#add(code, fieldPath, message, "warning");
  }

  #add(code: IssueCode, fieldPath: FieldPath, message: string, severity: Issue["severity"]): void {
    const key = `${code}\n${fieldPath.join("\n")}`;
    if (this.#seen.has(key)) return;
    this.#seen.add(key);
    if (this.#listed[severity] >= MAX_ISSUES) {
      this.unlisted[severity] += 1;
      return;
    }
    // The code is printed after the message, so the message ends without a full stop.
    const issue = { code, ...this.#positions.locate(fieldPath), message: message.replace(/\.$/, ""), severity };
    this.#listed[severity] += 1;
    this.issues.push(issue);
  }
}

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** A field value of RFC 9110 section 5.5 as sent, without surrounding whitespace. */
const FIELD_VALUE = /^(?:[!-~\x80-\xff](?:[\t -~\x80-\xff]*[!-~\x80-\xff])?)?$/;

/** A whole or embedded secret reference; see {@link secretForm}. */
const REFERENCE = /\$\{(?:[A-Za-z_][A-Za-z0-9_]*|file:[^}]*)\}/;

/** Fields that a route sends to clients verbatim. */
const FREE_TEXTS = new Set(["body", "message"]);

/** Well above MAX_ISSUES, since some are found in one draft only. */
const MAX_CLAIMS = 10 * MAX_ISSUES;

/** Issues found in the first draft. */
class CrossReferences implements IssueReport {
  readonly #reading: DocumentReading;
  readonly #reported: ReadonlySet<string>;
  readonly #issues = new Map<string, Parameters<IssueReport["error"]>>();

  constructor(reading: DocumentReading) {
    this.#reading = reading;
    this.#reported = new Set(reading.issues.map(({ path }) => path));
  }

  get areNone(): boolean {
    return this.#issues.size === 0;
  }

  error(code: IssueCode, fieldPath: FieldPath, message: string): void {
    const { isPartial, positions, unread } = this.#reading;
    if (this.#issues.size >= MAX_CLAIMS || (isPartial && code === "unknown_reference")) return;
    const { path } = positions.locate(fieldPath);
    if (this.#reported.has(path) || isWithin(path, unread)) return;
    this.#issues.set(keyOf(code, fieldPath), [code, fieldPath, withoutPlaceholders(message)]);
  }

  warning(): void {
    // Warnings about an unreadable document are meaningless.
  }

  keep(seen: ReadonlySet<string>): void {
    for (const key of this.#issues.keys()) if (!seen.has(key)) this.#issues.delete(key);
  }

  reportTo(report: IssueReport): void {
    for (const issue of this.#issues.values()) report.error(...issue);
  }
}

/** A check of one slice or of routing. */
export type DocumentCheck = (document: ConfigDocument, report: IssueReport, scope: CheckScope) => void;

export interface CheckParts {
  /** Checks of all slices and of routing, which also warns about shadowed routes. */
  readonly checks: readonly DocumentCheck[];
  readonly clock: Clock;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Reports secrets and files missing on this machine as `not_checked` instead of as errors. */
  readonly isOffline?: boolean;
}

/** Secrets and files read during one build of a generation. */
export interface Findings {
  readonly secrets: SecretResolver;
  readonly files: FileReader;
}

/** New findings of a build; files in `found` are not read again. */
export function freshFindings(environment: CheckParts["environment"], found?: Findings["files"]["outcomes"]): Findings {
  const files = new FileReader(found);
  return { files, secrets: new SecretResolver(environment, files) };
}

/**
 * All errors and warnings of a parsed document, structural ones included, in text order. Readable parts of a document
 * with a broken structure are checked too. At most 500 errors and 500 warnings are listed; `more_issues` counts the
 * rest.
 */
export function checkDocument(reading: DocumentReading, parts: CheckParts, findings: Findings): Issue[] {
  return atOnce(checkingSteps(reading, parts, findings));
}

/** The steps of {@link checkDocument}, for callers that interleave other work. */
export function* checkingSteps(reading: DocumentReading, parts: CheckParts, findings: Findings): Steps<Issue[]> {
  const unlisted = { error: reading.unlisted, warning: 0 };
  const { document } = reading;
  const isSound = !reading.issues.some(isError);
  const collector = new IssueCollector(reading.positions);
  const syntax = reading.issues.filter(({ code }) => code === "syntax");
  // A duplicate key leaves its value undefined.
  const unread = new Set([...reading.unread, ...syntax.map(({ path }) => path)]);
  const scope: CheckScope = {
    clock: parts.clock,
    secret: (text) => {
      const outcome = findings.secrets.resolve(text);
      return outcome.ok ? outcome.secret : undefined;
    },
    readFile: (path) => {
      const outcome = findings.files.read(path);
      return outcome.ok ? outcome.bytes : undefined;
    },
  };
  const surroundings = {
    files: findings.files,
    nowMs: parts.clock.now(),
    isDevelopment: parts.environment["GATEWAY_ADMIN_DEV"] === "1",
  };
  const checks: readonly DocumentCheck[] = [
    (checked, report) => checkReferences(checked, report, unread),
    checkEntities,
    (checked, report) => checkMarkedFields(checked, report, findings.secrets),
    checkMisplacedReferences,
    (checked, report) => checkListeners(checked, report, surroundings),
    ...parts.checks,
  ];
  const [draft] = reading.drafts;
  const report =
    parts.isOffline === true && draft !== undefined ? offlineReport(collector, draft, findings) : collector;
  for (const check of checks) {
    if (document !== undefined && isSound) runCheck(check, document, report, scope);
    else yield* checkPartialDocument((checked, claims) => check(checked, claims, scope), reading, report);
    yield;
  }
  unlisted.error += collector.unlisted.error;
  // Warnings about an unreadable document are meaningless.
  if (isSound) unlisted.warning += collector.unlisted.warning;
  return listedIssues(inTextOrder([...reading.issues, ...collector.issues]), unlisted, isSound);
}

/** The number of errors, unlisted ones included. */
export function errorCount(issues: readonly Issue[]): number {
  return issueCount(issues.filter(isError));
}

/** The number of issues, unlisted ones included. */
export function issueCount(issues: readonly Issue[]): number {
  return issues.reduce((sum, { count = 1 }) => sum + count, 0);
}

/** True for issues that prevent publication. */
export function isError(issue: Issue): boolean {
  return issue.severity === "error";
}

/** True for issues that only the gateway's own machine can decide. */
export function isNotChecked({ code }: Issue): boolean {
  return code === "not_checked";
}

/** Turns issues about secrets and files of another machine into `not_checked`. */
function offlineReport(report: IssueReport, document: ConfigDocument, { secrets, files }: Findings): IssueReport {
  const isElsewhere = (code: IssueCode, fieldPath: FieldPath): boolean => {
    if (code === "required") return fieldPath.join("/") === "admin/tls" && isOnLoopback(document);
    const value = fieldPath.reduce<unknown>(
      (inner, step) => (inner as Record<string, unknown> | undefined)?.[step],
      document,
    );
    if (typeof value !== "string") return false;
    const outcome = code === "secret_unresolved" ? secrets.resolve(value) : code === "bad_file" && files.read(value);
    return outcome !== false && !outcome.ok && outcome.isAbsent === true;
  };
  return {
    error: (code, fieldPath, message) => {
      if (isElsewhere(code, fieldPath)) report.warning("not_checked", fieldPath, message);
      else report.error(code, fieldPath, message);
    },
    warning: (code, fieldPath, message) => report.warning(code, fieldPath, message),
  };
}

/** Without TLS, an admin API on loopback needs GATEWAY_ADMIN_DEV in the gateway's environment. */
function isOnLoopback({ admin }: ConfigDocument): boolean {
  const { address = "" } = parseBind(admin?.bind ?? DEFAULT_ADMIN_BIND) ?? {};
  return address === "localhost" || isLoopback(address);
}

function runCheck(check: DocumentCheck, document: ConfigDocument, report: IssueReport, scope: CheckScope): void {
  try {
    check(document, report, scope);
  } catch (error) {
    report.error(
      "compile_failed",
      [],
      `The document could not be checked: ${errorName(error)} in ${check.name || "a check"}`,
    );
  }
}

/** The error's class only: its message might quote the document. */
export function errorName(error: unknown): string {
  return error instanceof Error ? error.name : "an unknown error";
}

/** The stack without the message, which might quote a secret. */
export function errorTrace(error: unknown): string {
  const frames = (error instanceof Error ? (error.stack ?? "") : "").split("\n").filter((line) => /^\s+at /.test(line));
  return [errorName(error), ...frames].join("\n");
}

/**
 * Reports errors of a partially read document that occur with every placeholder. Errors at a placeholder, or where
 * reading already reported an issue, are omitted.
 */
function* checkPartialDocument(
  check: (draft: ConfigDocument, report: IssueReport) => void,
  reading: DocumentReading,
  report: IssueReport,
): Steps<void> {
  const [first, ...others] = reading.drafts;
  if (first === undefined) return;
  const claims = new CrossReferences(reading);
  attempt(() => check(first, claims));
  for (const draft of others) {
    // Fast path: most checks find nothing.
    if (claims.areNone) return;
    yield;
    const seen = new Set<string>();
    const probeReport: IssueReport = {
      error: (code, fieldPath) => seen.add(keyOf(code, fieldPath)),
      warning: () => undefined,
    };
    if (attempt(() => check(draft, probeReport))) claims.keep(seen);
  }
  claims.reportTo(report);
}

/** Returns false if the check throws: a partial document may break guarantees of the schema. */
function attempt(check: () => void): boolean {
  try {
    check();
    return true;
  } catch {
    return false;
  }
}

function keyOf(code: IssueCode, fieldPath: FieldPath): string {
  return `${code}\n${fieldPath.join("\n")}`;
}

/** True if the pointer equals one of the roots or lies below one. */
function isWithin(path: string, roots: ReadonlySet<string>): boolean {
  for (let end = path.length; end > 0; end = path.lastIndexOf("/", end - 1)) {
    if (roots.has(path.slice(0, end))) return true;
  }
  return false;
}

/** Reports secret references in fields where references are not resolved and would be used verbatim. */
function checkMisplacedReferences(document: ConfigDocument, report: IssueReport): void {
  const texts: FieldPath[] = [];
  for (const [section, value] of Object.entries(document)) collectReferences(value, [section], texts);
  if (texts.length === 0) return;
  const secrets = new Set(
    annotatedFields(documentSchema, document, "x-secret").map(({ fieldPath }) => fieldPath.join("\n")),
  );
  for (const fieldPath of texts) {
    const field = String(fieldPath.at(-1));
    // In substitutions `${name}` is a capture group.
    if (field === "substitution" || secrets.has(fieldPath.join("\n"))) continue;
    const message = `${named(fieldPath)} has a secret reference, which is only resolved in secret fields`;
    if (FREE_TEXTS.has(field)) report.warning("secret_malformed", fieldPath, `${message}; clients get it as it stands`);
    else report.error("secret_malformed", fieldPath, `${message}; write the value`);
  }
}

/** `place` is the current path, shared and mutated: thousands of values are visited for each match. */
function collectReferences(value: unknown, fieldPath: (string | number)[], found: FieldPath[]): void {
  if (typeof value === "string") {
    if (value.includes("${") && REFERENCE.test(value)) found.push([...fieldPath]);
    return;
  }
  if (typeof value !== "object" || value === null) return;
  for (const [step, member] of Array.isArray(value) ? value.entries() : Object.entries(value)) {
    fieldPath.push(step);
    collectReferences(member, fieldPath, found);
    fieldPath.pop();
  }
}

/** Checks fields by schema annotation: secret references, header names and values, networks. */
function checkMarkedFields(document: ConfigDocument, report: IssueReport, secrets: SecretResolver): void {
  for (const { fieldPath, value } of annotatedFields(documentSchema, document, "x-secret")) {
    const outcome = secrets.resolve(String(value));
    if (!outcome.ok) report.error(outcome.code, fieldPath, `${named(fieldPath)} ${outcome.message}`);
  }
  for (const { fieldPath, value } of annotatedFields(documentSchema, document, "x-cidr")) {
    const text = String(value);
    const network = parseNetwork(text);
    if (network === undefined) {
      const message = `${named(fieldPath)} must be an IP address or a network such as 10.0.0.0/8${networkForm(text)}`;
      report.error("bad_cidr", fieldPath, message);
    } else if (!text.includes("/") && /(?:\.0|::)$/.test(text) && !isUnspecified(text)) {
      report.warning(
        "bad_cidr",
        fieldPath,
        `${named(fieldPath)} is one address; write a length behind it for a network, such as ${text}/${text.includes(":") ? 64 : 24}`,
      );
    }
  }
  for (const { fieldPath, value, schema } of annotatedFields(documentSchema, document, "x-header-map")) {
    const isSecret = Object.values(schema.patternProperties ?? {}).some((inner) => inner["x-secret"] === true);
    for (const [name, text] of Object.entries(value as Record<string, string>)) {
      checkHeader(name, text, [...fieldPath, name], report, isSecret ? secrets : undefined);
    }
  }
  for (const { fieldPath, value } of annotatedFields(documentSchema, document, "x-header-renames")) {
    for (const [name, to] of Object.entries(value as Record<string, string>)) {
      if (!TOKEN.test(name)) badName(name, [...fieldPath, name], report);
      else if (!TOKEN.test(to)) badName(to, [...fieldPath, name], report);
    }
  }
}

function checkHeader(
  name: string,
  text: string,
  fieldPath: FieldPath,
  report: IssueReport,
  secrets: SecretResolver | undefined,
): void {
  if (!TOKEN.test(name)) return badName(name, fieldPath, report);
  const outcome = secrets?.resolve(text);
  // Reported together with all other secrets.
  if (outcome !== undefined && !outcome.ok) return;
  if (FIELD_VALUE.test(wireText(outcome?.secret.reveal() ?? text))) return;
  report.error(
    "bad_header",
    fieldPath,
    `${named(fieldPath)} has characters that a header's value cannot have, or space at its ends`,
  );
}

function badName(name: string, fieldPath: FieldPath, report: IssueReport): void {
  report.error("bad_header", fieldPath, `"${name}" is not a legal header name`);
}

type IssueTotals = Record<Issue["severity"], number>;

/**
 * The issues to show: in text order, the first {@link MAX_ISSUES} of each severity, then one issue with the number of
 * the rest. `isExact` is false if counting stopped early.
 */
function listedIssues(inOrder: readonly Issue[], unlisted: IssueTotals, isExact: boolean): Issue[] {
  const listed: IssueTotals = { error: 0, warning: 0 };
  const kept = inOrder.filter(({ severity }) => (listed[severity] += 1) <= MAX_ISSUES);
  const notes = (["error", "warning"] as const).flatMap((severity): Issue[] => {
    const count = unlisted[severity] + Math.max(0, listed[severity] - MAX_ISSUES);
    if (count === 0) return [];
    const total = count + Math.min(MAX_ISSUES, listed[severity]);
    const message = `There are ${isExact ? "" : "at least "}${total} ${severity}s; the first ${MAX_ISSUES} are listed`;
    return [{ code: "more_issues", path: "", message, severity, count }];
  });
  return [...kept, ...notes];
}
