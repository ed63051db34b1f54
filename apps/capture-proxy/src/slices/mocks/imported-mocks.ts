import type { Condition, MockResponse } from "@headworks/capture-contract";
import { isNumeric } from "@headworks/json";
import { type MockDraft, plainDraft } from "./mock-rule.ts";

/** The document is invalid or unusable; the message is shown to the user. */
export class ImportProblem extends Error {
  override readonly name = "ImportProblem";
}

export interface ImportedMocks {
  readonly drafts: readonly MockDraft[];
  readonly skipped: number;
  readonly warnings: readonly string[];
  readonly moreWarnings: number;
}

const MAX_DRAFTS = 5000;
const MAX_WARNINGS = 100;
const MAX_WARNING_LENGTH = 500;

export class ImportCollector {
  readonly #drafts: MockDraft[] = [];
  readonly #warnings = new Set<string>();
  #moreWarnings = 0;
  #skipped = 0;

  add(name: string, condition: Condition, response: MockResponse, more: Partial<MockDraft> = {}): void {
    if (this.#drafts.length >= MAX_DRAFTS) {
      throw new ImportProblem(`The document makes more than ${MAX_DRAFTS} rules; import it in parts`);
    }
    this.#drafts.push({ ...plainDraft(name, condition, { type: "single", response }), ...more });
  }

  /** Replaces an added rule by a sequence of responses. */
  replaceLast(draft: MockDraft, by: MockDraft): void {
    const index = this.#drafts.lastIndexOf(draft);
    if (index !== -1) this.#drafts[index] = by;
  }

  get last(): MockDraft | undefined {
    return this.#drafts.at(-1);
  }

  /** Repeated warnings are dropped. */
  warn(warning: string): void {
    const text = warning.length > MAX_WARNING_LENGTH ? `${warning.slice(0, MAX_WARNING_LENGTH - 1)}…` : warning;
    if (this.#warnings.has(text)) return;
    if (this.#warnings.size < MAX_WARNINGS) this.#warnings.add(text);
    else this.#moreWarnings += 1;
  }

  skip(warning: string): void {
    this.#skipped += 1;
    this.warn(warning);
  }

  done(): ImportedMocks {
    return {
      drafts: this.#drafts,
      skipped: this.#skipped,
      warnings: [...this.#warnings],
      moreWarnings: this.#moreWarnings,
    };
  }
}

/** Warnings up to the limit of a result; the last states the number of omitted ones. */
export function shownWarnings(warnings: readonly string[], moreWarnings: number): string[] {
  const all = warnings.length + moreWarnings;
  if (all <= MAX_WARNINGS) return [...warnings];
  const shown = warnings.slice(0, MAX_WARNINGS - 1);
  return [...shown, `${all - shown.length} more warnings are not shown`];
}

export type Members = Readonly<Record<string, unknown>>;

export function membersOf(value: unknown): Members | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !isNumeric(value)
    ? (value as Members)
    : undefined;
}

export function member(value: Members | undefined, name: string): unknown {
  return value !== undefined && Object.hasOwn(value, name) ? value[name] : undefined;
}

export function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
