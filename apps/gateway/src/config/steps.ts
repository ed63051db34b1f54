import { setImmediate as eventLoopTurn } from "node:timers/promises";

/** Work that yields at points where other work may run. */
export type Steps<T> = Generator<undefined, T>;

/** Runs all steps synchronously. */
export function atOnce<T>(steps: Steps<T>): T {
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  return step.value;
}

/** Runs steps with event-loop turns in between, so that a large document does not block requests. */
export async function inTurns<T>(steps: Steps<T>): Promise<T> {
  let step = steps.next();
  while (step.done !== true) {
    await eventLoopTurn();
    step = steps.next();
  }
  return step.value;
}
