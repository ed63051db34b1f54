/** Makes a test of focus patterns: `name`, `.name` (the domain and below), `*.name` (below), and stars anywhere. */
export function focusMatcher(patterns: readonly string[]): (host: string) => boolean {
  const tests = patterns.map(testOf);
  const seen = new Map<string, boolean>();
  return (host) => {
    let known = seen.get(host);
    if (known === undefined) {
      const name = host.toLowerCase().replace(/:\d+$/u, "").replace(/\.$/u, "");
      known = tests.some((test) => test(name));
      // A page full of random host names must not fill the memory.
      if (seen.size > 5000) seen.clear();
      seen.set(host, known);
    }
    return known;
  };
}

function testOf(pattern: string): (host: string) => boolean {
  const text = pattern.trim().toLowerCase();
  if (text.startsWith(".")) return (host) => host === text.slice(1) || host.endsWith(text);
  if (!text.includes("*")) return (host) => host === text;
  const parts = text.split("*");
  const first = parts[0] ?? "";
  const last = parts.at(-1) ?? "";
  const middle = parts.slice(1, -1);
  return (host) => {
    if (host.length < first.length + last.length || !host.startsWith(first) || !host.endsWith(last)) return false;
    let at = first.length;
    for (const part of middle) {
      const found = host.indexOf(part, at);
      if (found === -1) return false;
      at = found + part.length;
    }
    return at <= host.length - last.length;
  };
}
