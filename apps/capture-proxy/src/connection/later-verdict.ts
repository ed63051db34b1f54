/**
 * Continues with the verdict of an asynchronous rule. Errors of `proceed` also go to `failed`: nothing awaits this
 * promise, so a rejection would end the process.
 */
export function whenDecided<T>(
  verdict: Promise<T>,
  proceed: (verdict: T) => void,
  failed: (error: unknown) => void,
): void {
  void verdict.then(proceed).catch(failed);
}
