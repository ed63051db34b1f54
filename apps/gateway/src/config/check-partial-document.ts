import type { ConfigDocument, IssueCode } from "@headworks/gateway-contract";
import type { IssueReport } from "#slice.ts";
import type { Place } from "./pointer.ts";
import type { DocumentReading } from "./read-document.ts";
import { withoutPlaceholders } from "./placeholders.ts";
import type { Steps } from "./steps.ts";
import { MAX_ISSUES } from "./yaml-source.ts";

/** Far more than are listed, since some may be found in one draft only. */
const MAX_CLAIMS = 10 * MAX_ISSUES;

/**
 * Reports the errors that a check finds in a document of which something could not be read: those that are there whatever
 * stands in its place. What is found at that place itself, or where the reading has an issue already, is none.
 */
export function* checkPartialDocument(
  check: (draft: ConfigDocument, report: IssueReport) => void,
  reading: DocumentReading,
  report: IssueReport,
): Steps<void> {
  const [first, ...others] = reading.drafts;
  if (first === undefined) return;
  const claims = new CrossReferences(reading);
  attempt(() => check(first, claims));
  for (const draft of others) {
    // Most checks find nothing, and then there is nothing to be confirmed.
    if (claims.areNone) return;
    yield;
    const seen = new Set<string>();
    const probeReport: IssueReport = { error: (code, place) => seen.add(keyOf(code, place)), warning: () => undefined };
    if (attempt(() => check(draft, probeReport))) claims.keep(seen);
  }
  claims.tell(report);
}

/** A check may rely on what the schema promises, which such a document does not keep: bounds of lists, for one. */
function attempt(check: () => void): boolean {
  try {
    check();
    return true;
  } catch {
    return false;
  }
}

/** What is said of the first draft. */
class CrossReferences implements IssueReport {
  readonly #reading: DocumentReading;
  readonly #reported: ReadonlySet<string>;
  readonly #told = new Map<string, Parameters<IssueReport["error"]>>();

  constructor(reading: DocumentReading) {
    this.#reading = reading;
    this.#reported = new Set(reading.issues.map(({ path }) => path));
  }

  get areNone(): boolean {
    return this.#told.size === 0;
  }

  error(code: IssueCode, place: Place, message: string): void {
    const { isPartial, places, unread } = this.#reading;
    if (this.#told.size >= MAX_CLAIMS || (isPartial && code === "unknown_reference")) return;
    const { path } = places.locate(place);
    if (this.#reported.has(path) || isWithin(path, unread)) return;
    this.#told.set(keyOf(code, place), [code, place, withoutPlaceholders(message)]);
  }

  warning(): void {
    // Warnings about a document that cannot be read are none.
  }

  keep(seen: ReadonlySet<string>): void {
    for (const key of this.#told.keys()) if (!seen.has(key)) this.#told.delete(key);
  }

  tell(report: IssueReport): void {
    for (const issue of this.#told.values()) report.error(...issue);
  }
}

function keyOf(code: IssueCode, place: Place): string {
  return `${code}\n${place.join("\n")}`;
}

/** Whether a pointer is one of these, or leads to something below one. */
function isWithin(path: string, roots: ReadonlySet<string>): boolean {
  for (let end = path.length; end > 0; end = path.lastIndexOf("/", end - 1)) {
    if (roots.has(path.slice(0, end))) return true;
  }
  return false;
}
