/**
 * Goes on with a verdict that a rule takes its time for. A defect of ours on the way is told to `failed`, and ends what it
 * belongs to as it would have ended it at once: not the process, as nobody waits for the promise.
 */
export function whenDecided<T>(
  verdict: Promise<T>,
  proceed: (verdict: T) => void,
  failed: (error: unknown) => void,
): void {
  void verdict.then(proceed).catch(failed);
}
