// Tested by check-document.test.ts
import type { Issue, IssueCode } from "@headworks/gateway-contract";
import type { IssueReport } from "#slice.ts";
import type { Place } from "./pointer.ts";
import type { SourcePlaces } from "./read-document.ts";

/** Collects issues and finds their places in the text. */
export class IssueCollector implements IssueReport {
  readonly issues: Issue[] = [];
  readonly #places: SourcePlaces;

  constructor(places: SourcePlaces) {
    this.#places = places;
  }

  error(code: IssueCode, place: Place, message: string): void {
    this.#add(code, place, message, "error");
  }

  warning(code: IssueCode, place: Place, message: string): void {
    this.#add(code, place, message, "warning");
  }

  /** The code stands behind the message where people read it, so a full stop would be in between. */
  #add(code: IssueCode, place: Place, message: string, severity: Issue["severity"]): void {
    this.issues.push({ code, ...this.#places.locate(place), message: message.replace(/\.$/, ""), severity });
  }
}
