import { compileHostPatterns } from "@headworks/host-patterns";

/** Makes a test of focus patterns, which mean what they mean to the proxy. Hosts may have a port. */
export function focusMatcher(patterns: readonly string[]): (host: string) => boolean {
  const matcher = compileHostPatterns(patterns, "focus");
  const seen = new Map<string, boolean>();
  return (host) => {
    let known = seen.get(host);
    if (known === undefined) {
      known = matcher.matches(host.replace(/(?<=^[^:]*|\]):\d+$/u, ""));
      // A page full of random host names must not fill the memory.
      if (seen.size > 5000) seen.clear();
      seen.set(host, known);
    }
    return known;
  };
}
