/**
 * Asserts that the owner raised a valid event: a failure is a bug in our code, never caused by a peer.
 * @throws Error
 */
export function demand(holds: boolean, rule: string): asserts holds {
  if (!holds) throw new Error(`Broken rule: ${rule}`);
}
