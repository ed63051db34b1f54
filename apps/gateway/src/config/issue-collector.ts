import type { Issue, IssueCode } from "@headworks/gateway-contract";
import type { IssueReport } from "#slice.ts";
import type { Place } from "./pointer.ts";
import type { SourcePlaces } from "./read-document.ts";
import { MAX_ISSUES } from "./yaml-source.ts";

/** How many issues of each severity. */
export type IssueTotals = Record<Issue["severity"], number>;

/**
 * Collects issues and finds their places in the text; of each severity as many as are listed, and how many more there
 * are. A code at a place is one issue, however often it is reported.
 */
export class IssueCollector implements IssueReport {
  readonly issues: Issue[] = [];
  readonly unlisted: IssueTotals = { error: 0, warning: 0 };
  readonly #listed: IssueTotals = { error: 0, warning: 0 };
  readonly #places: SourcePlaces;
  readonly #seen = new Set<string>();

  constructor(places: SourcePlaces) {
    this.#places = places;
  }

  error(code: IssueCode, place: Place, message: string): void {
    this.#add(code, place, message, "error");
  }

  warning(code: IssueCode, place: Place, message: string): void {
    this.#add(code, place, message, "warning");
  }

  #add(code: IssueCode, place: Place, message: string, severity: Issue["severity"]): void {
    const key = `${code}\n${place.join("\n")}`;
    if (this.#seen.has(key)) return;
    this.#seen.add(key);
    if (this.#listed[severity] >= MAX_ISSUES) {
      this.unlisted[severity] += 1;
      return;
    }
    // The code stands behind the message where people read it, so a full stop would be in between.
    const issue = { code, ...this.#places.locate(place), message: message.replace(/\.$/, ""), severity };
    this.#listed[severity] += 1;
    this.issues.push(issue);
  }
}

/**
 * The list that people get: issues in the order of the text, of each severity the first {@link MAX_ISSUES}, and behind
 * them one issue that says how many more there are. `isExact`: of these all were counted.
 */
export function listedIssues(inOrder: readonly Issue[], unlisted: IssueTotals, isExact: boolean): Issue[] {
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
