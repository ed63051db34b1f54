// Tested by read-document.test.ts

/** Work that may be done in one go or in turns with other work: it yields where it could wait. */
export type Steps<T> = Generator<undefined, T>;

/** Does all steps in one go. */
export function atOnce<T>(steps: Steps<T>): T {
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  return step.value;
}
