/** Fields that say where a body ends: the engine writes them, whatever a rule or a decision says. */
const FRAMING = new Set(["content-length", "transfer-encoding"]);

/** Why a field of this name cannot be set or removed; undefined when it can. */
export function fieldProblem(name: string): string | undefined {
  return FRAMING.has(name.toLowerCase()) ? "says where the body ends, which is always worked out anew" : undefined;
}
