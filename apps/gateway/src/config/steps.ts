import { setImmediate as eventLoopTurn } from "node:timers/promises";

/** Work that may be done in one go or in turns with other work: it yields where it could wait. */
export type Steps<T> = Generator<undefined, T>;

/** Does all steps in one go. */
export function atOnce<T>(steps: Steps<T>): T {
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  return step.value;
}

/** Does steps with turns of the event loop between them: a large document must not keep requests waiting for all of it. */
export async function inTurns<T>(steps: Steps<T>): Promise<T> {
  let step = steps.next();
  while (step.done !== true) {
    await eventLoopTurn();
    step = steps.next();
  }
  return step.value;
}
