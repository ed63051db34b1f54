import type { RuleBlock, Subject } from "./rule-block.ts";

/** Why a request may not pass: nobody knows who sends it, or it is known and not enough. */
export interface Objection {
  readonly status: 401 | 403;
  /** The block that objects. */
  readonly block: RuleBlock;
}

/**
 * What the blocks over a request say against it, the most specific block first; undefined when it may pass.
 *
 * A rule that denies counts at every level. Otherwise the most specific block that says who may pass decides, with all
 * its rules; blocks before it only deny, and ask that the consumer is known if it is consumers they deny. Blocks on
 * trial are left out unless they are asked for.
 */
export function objectionTo(
  subject: Subject,
  blocks: readonly RuleBlock[],
  withTrials: boolean,
): Objection | undefined {
  let objection: Objection | undefined;
  let isDecided = false;
  for (const block of blocks) {
    if (block.isOnTrial && !withTrials) continue;
    if (block.denies(subject)) return { status: 403, block };
    if (isDecided) continue;
    // Less specific levels may still deny, which weighs more than not being known.
    if (objection?.status !== 403) objection = objectionOf(block, subject) ?? objection;
    isDecided = block.saysWho;
  }
  return objection;
}

function objectionOf(block: RuleBlock, subject: Subject): Objection | undefined {
  if (!block.admitsAddress(subject)) return { status: 403, block };
  if (!block.asksForConsumer) return undefined;
  if (subject.consumer === undefined) return { status: 401, block };
  return block.admitsConsumer(subject.consumer) ? undefined : { status: 403, block };
}
