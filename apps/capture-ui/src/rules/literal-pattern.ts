const SPECIAL = /[\\^$.|?*+()[\]{}]/gu;

/** A pattern matching literal text: exactly, as a prefix, or anywhere. */
export function literalPattern(comparison: string, text: string): string {
  const escaped = text.replaceAll(SPECIAL, "\\$&");
  if (comparison === "is") return `^${escaped}$`;
  return comparison === "begins" ? `^${escaped}` : escaped;
}

/** The literal text of a pattern; null for patterns that are not literal. */
export function asLiteral(
  pattern: string,
): { readonly comparison: "is" | "begins" | "contains"; readonly text: string } | null {
  const isAnchored = pattern.startsWith("^");
  const isClosed = isAnchored && /[^\\](?:\\\\)*\$$/u.test(pattern);
  const inner = pattern.slice(isAnchored ? 1 : 0, isClosed ? -1 : undefined);
  let text = "";
  for (let at = 0; at < inner.length; at++) {
    const char = inner.charAt(at);
    if (char === "\\") {
      at += 1;
      const next = inner.charAt(at);
      // `\d`, `\b` and similar are classes, not literals.
      if (next === "" || /[0-9A-Za-z]/u.test(next)) return null;
      text += next;
    } else if (/[\^$.|?*+()[\]{}]/u.test(char)) {
      return null;
    } else {
      text += char;
    }
  }
  if (text === "") return null;
  return { comparison: isClosed ? "is" : isAnchored ? "begins" : "contains", text };
}
