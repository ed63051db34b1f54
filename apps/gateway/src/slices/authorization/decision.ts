import type { RuleBlock, Subject } from "./rule-block.ts";

/** Reason for a refusal: unauthenticated, or authenticated without permission. */
export interface Objection {
  readonly status: 401 | 403;
  readonly block: RuleBlock;
}

/**
 * The objection of the blocks of all levels, most specific first; undefined if the request is allowed. A deny rule
 * counts at every level. Otherwise the most specific block with allow rules decides, with all its rules; deny-only
 * blocks before it require an identified consumer if they deny consumers. Dry-run blocks are skipped unless requested.
 */
export function objectionTo(
  subject: Subject,
  blocks: readonly RuleBlock[],
  withTrials: boolean,
): Objection | undefined {
  let objection: Objection | undefined;
  let isDecided = false;
  for (const block of blocks) {
    if (block.isDryRun && !withTrials) continue;
    if (block.denies(subject)) return { status: 403, block };
    if (isDecided) continue;
    // A denial (403) at a less specific level takes precedence over 401.
    if (objection?.status !== 403) objection = objectionOf(block, subject) ?? objection;
    isDecided = block.hasAllowRules;
  }
  return objection;
}

function objectionOf(block: RuleBlock, subject: Subject): Objection | undefined {
  if (!block.admitsAddress(subject)) return { status: 403, block };
  if (!block.asksForConsumer) return undefined;
  if (subject.consumer === undefined) return { status: 401, block };
  return block.admitsConsumer(subject.consumer) ? undefined : { status: 403, block };
}
