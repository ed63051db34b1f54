/** The proxy frames bodies itself, so rules and breakpoint decisions cannot set these. */
const FRAMING = new Set(["content-length", "transfer-encoding"]);

/** Why a rule cannot set or remove the field; undefined when it can. */
export function fieldProblem(name: string): string | undefined {
  return FRAMING.has(name.toLowerCase()) ? "frames the body and is always computed by the proxy" : undefined;
}
