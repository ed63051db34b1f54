import { compileHostPatterns } from "@headworks/host-patterns";

/** A matcher of focus patterns with the proxy's semantics. Hosts may have a port. */
export function focusMatcher(patterns: readonly string[]): (host: string) => boolean {
  const matcher = compileHostPatterns(patterns, "focus");
  const seen = new Map<string, boolean>();
  return (host) => {
    let known = seen.get(host);
    if (known === undefined) {
      known = matcher.matches(host.replace(/(?<=^[^:]*|\]):\d+$/u, ""));
      // Bounds memory for traffic with many random host names.
      if (seen.size > 5000) seen.clear();
      seen.set(host, known);
    }
    return known;
  };
}
