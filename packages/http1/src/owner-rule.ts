/**
 * Stops an owner that raises an event which its state forbids: a fault in our own code, never in what a peer sent.
 * @throws Error
 */
export function demand(holds: boolean, rule: string): asserts holds {
  if (!holds) throw new Error(`Broken rule: ${rule}`);
}
