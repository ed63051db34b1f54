import type { StoreLimits } from "../capture-store.ts";
import { beyondLimit, maxBytes } from "../write/retention.ts";
import type { ImportOutcome } from "./traffic-import.ts";
import { ImportRefusedError } from "./traffic-import.ts";

/** What the limits of the store took because of an import. */
export interface ImportLoss {
  /** Entries of the document. */
  readonly dropped: number;
  /** Older entries of other sessions. */
  readonly displaced: number;
}

/** Throws {@link ImportRefusedError} as soon as the bodies of a document alone are more than the store may hold. */
export function refuseTooLarge(storedBytes: number, limits: StoreLimits): void {
  if (storedBytes <= maxBytes(limits)) return;
  throw new ImportRefusedError(
    `The bodies of the document are larger than max_total_size_mb allows, which is ${limits.maxTotalSizeMb}: nothing of it was kept, and no entry had to go for it`,
  );
}

/** The sentences about what the limits took, and what they will take. */
export function limitNotes(
  loss: ImportLoss,
  { imported_count: imported }: Pick<ImportOutcome, "imported_count">,
  limits: StoreLimits,
): string[] {
  const notes: string[] = [];
  if (loss.displaced > 0) {
    notes.push(`max_total_size_mb is ${limits.maxTotalSizeMb}: ${entries(loss.displaced)} of other sessions had to go`);
  }
  const beyond = beyondLimit(imported, limits);
  if (beyond > 0) {
    const when = loss.dropped > 0 ? "were dropped" : "are dropped when this session becomes the active one";
    notes.push(`max_requests is ${limits.maxRequests}: the oldest ${beyond} of its ${imported} entries ${when}`);
  }
  return notes;
}

function entries(count: number): string {
  return count === 1 ? "the oldest entry" : `the ${count} oldest entries`;
}
