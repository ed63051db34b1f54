import type { IssueReport } from "#slice.ts";

/** Remembers who has a credential, so that each leads to one consumer. */
export class CredentialOwners {
  readonly #report: IssueReport;
  /** How messages name the credential, such as `API key`. */
  readonly #what: string;
  readonly #owners = new Map<string, string>();

  constructor(report: IssueReport, what: string) {
    this.#report = report;
    this.#what = what;
  }

  /** `selector` is what requests are told apart by; it is in no message. */
  add(selector: string, consumer: string, place: readonly (string | number)[]): void {
    const owner = this.#owners.get(selector);
    if (owner === undefined) {
      this.#owners.set(selector, consumer);
      return;
    }
    const message =
      owner === consumer
        ? `"${consumer}" has this ${this.#what} twice`
        : `"${consumer}" has the same ${this.#what} as "${owner}", so nobody could tell whose a request is`;
    // A user with two passwords is about to have another one. A key that leads to one consumer is only told once too often.
    if (owner === consumer && this.#what === "user name") return;
    if (owner === consumer && this.#what === "API key") this.#report.warning("duplicate_credential", place, message);
    else this.#report.error("duplicate_credential", place, message);
  }
}
