import { DEFAULT_ADMIN_BIND, type ConfigDocument, type Issue, type IssueCode } from "@headworks/gateway-contract";
import { isLoopback } from "@headworks/host-patterns";
import type { CheckScope, Clock, IssueReport } from "#slice.ts";
import { checkPartialDocument } from "./check-partial-document.ts";
import { checkEntities } from "./check-entities.ts";
import { checkMarkedFields, checkMisplacedReferences } from "./check-fields.ts";
import { checkListeners, parseBind } from "./check-listeners.ts";
import { checkReferences } from "./check-references.ts";
import { FileReader } from "./file-reader.ts";
import { IssueCollector, listedIssues } from "./issue-collector.ts";
import { inTextOrder, type DocumentReading } from "./read-document.ts";
import { atOnce, type Steps } from "./steps.ts";
import type { Place } from "./pointer.ts";
import { SecretResolver } from "./secrets.ts";

/** One part's look at a document; a slice's `check`, or routing's. */
export type DocumentCheck = (document: ConfigDocument, report: IssueReport, scope: CheckScope) => void;

/** What checking needs besides the document. */
export interface CheckParts {
  /** Every slice's check, and others such as routing's, which also warns of shadowed routes. */
  readonly checks: readonly DocumentCheck[];
  readonly clock: Clock;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Secrets and files that this machine does not have are no errors: `not_checked` names them. */
  readonly isOffline?: boolean;
}

/** Secrets and files as one build of a generation found them. */
export interface Findings {
  readonly secrets: SecretResolver;
  readonly files: FileReader;
}

/** A fresh look at secrets and files; those in `found` are taken as they were found elsewhere. */
export function freshFindings(environment: CheckParts["environment"], found?: Findings["files"]["outcomes"]): Findings {
  const files = new FileReader(found);
  return { files, secrets: new SecretResolver(environment, files) };
}

/**
 * Everything that is wrong with a document that was read, its structure included, in the order of the text; warnings
 * too. Also looks at what could be read of a document with a broken structure, so that one run finds as much as it can.
 * At most 500 errors and 500 warnings are listed; `more_issues` says how many there are.
 */
export function checkDocument(reading: DocumentReading, parts: CheckParts, findings: Findings): Issue[] {
  return atOnce(checkingSteps(reading, parts, findings));
}

/** The steps of {@link checkDocument}, for who has other things to do meanwhile. */
export function* checkingSteps(reading: DocumentReading, parts: CheckParts, findings: Findings): Steps<Issue[]> {
  const unlisted = { error: reading.unlisted, warning: 0 };
  const { document } = reading;
  const isSound = !reading.issues.some(isError);
  const collector = new IssueCollector(reading.places);
  const syntax = reading.issues.filter(({ code }) => code === "syntax");
  // Of what is there twice, nobody knows which was meant.
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
  // Warnings about a document that cannot be read are none.
  if (isSound) unlisted.warning += collector.unlisted.warning;
  return listedIssues(inTextOrder([...reading.issues, ...collector.issues]), unlisted, isSound);
}

/** How many errors issues stand for. */
export function errorCount(issues: readonly Issue[]): number {
  return issueCount(issues.filter(isError));
}

/** How many there are, with those that are not listed. */
export function issueCount(issues: readonly Issue[]): number {
  return issues.reduce((sum, { count = 1 }) => sum + count, 0);
}

/** Whether an issue keeps the document from being published. */
export function isError(issue: Issue): boolean {
  return issue.severity === "error";
}

/** Whether an issue says what cannot be known on another machine than the gateway's. */
export function isNotChecked({ code }: Issue): boolean {
  return code === "not_checked";
}

/** Reports what only the gateway's machine has as not checked. */
function offlineReport(report: IssueReport, document: ConfigDocument, { secrets, files }: Findings): IssueReport {
  const isElsewhere = (code: IssueCode, place: Place): boolean => {
    if (code === "required") return place.join("/") === "admin/tls" && isOnLoopback(document);
    const value = place.reduce<unknown>(
      (inner, step) => (inner as Record<string, unknown> | undefined)?.[step],
      document,
    );
    if (typeof value !== "string") return false;
    const outcome = code === "secret_unresolved" ? secrets.resolve(value) : code === "bad_file" && files.read(value);
    return outcome !== false && !outcome.ok && outcome.isAbsent === true;
  };
  return {
    error: (code, place, message) => {
      if (isElsewhere(code, place)) report.warning("not_checked", place, message);
      else report.error(code, place, message);
    },
    warning: (code, place, message) => report.warning(code, place, message),
  };
}

/** Without TLS an admin API on loopback needs GATEWAY_ADMIN_DEV, in the gateway's environment. */
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

/** Only the kind of an error: its message might quote the document. */
export function errorName(error: unknown): string {
  return error instanceof Error ? error.name : "an unknown error";
}

/** Where an error came from, without its message, which might quote a secret. */
export function errorTrace(error: unknown): string {
  const frames = (error instanceof Error ? (error.stack ?? "") : "").split("\n").filter((line) => /^\s+at /.test(line));
  return [errorName(error), ...frames].join("\n");
}
