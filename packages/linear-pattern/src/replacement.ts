import type { LinearPattern, PatternError, PatternMatch } from "./pattern.ts";

export type Replacement = (match: PatternMatch) => string;

export type ReplacementCheck =
  | { readonly ok: true; readonly replacement: Replacement }
  | { readonly ok: false; readonly error: PatternError };

/** `$$`, `$&`, `$<name>`, `${name}`, `${12}`, `$12`. */
const REFERENCE = /\$(?:([$&])|<([^>]*)>|\{([^}]*)\}|([0-9]{1,2}))/g;

/**
 * Parses a replacement: `$1` to `$99`, `$<name>`, `${1}` and `${name}` are captures (empty for a group that did not
 * participate), `$&` and `$0` the whole match, `$$` a dollar sign; any other dollar sign is literal. As in
 * ECMAScript, `$12` is group 1 and a 2 with fewer than twelve groups. A group that the pattern does not have is an
 * error.
 */
export function readReplacement(
  source: string,
  { groupCount, groupNames }: Pick<LinearPattern, "groupCount" | "groupNames">,
): ReplacementCheck {
  const parts: (string | ((match: PatternMatch) => string | undefined))[] = [];
  let kept = 0;
  for (const reference of source.matchAll(REFERENCE)) {
    const [whole, sign, angled, braced, digits] = reference;
    parts.push(source.slice(kept, reference.index));
    kept = reference.index + whole.length;
    const name = angled ?? braced;
    if (sign === "$") parts.push("$");
    else if (sign === "&") parts.push(({ groups }) => groups[0]);
    else if (name !== undefined && !/^[0-9]{1,3}$/.test(name)) {
      if (!groupNames.includes(name)) {
        return refused(`the pattern has no group called \`${name}\``, reference.index, kept);
      }
      parts.push(({ named }) => named[name]);
    } else {
      const text = name ?? digits ?? "";
      const number = name === undefined && Number(text) > groupCount && text.length === 2 ? text.slice(0, 1) : text;
      if (Number(number) > groupCount) {
        return refused(
          `the pattern has ${groupCount === 0 ? "no groups" : `${groupCount} groups only`}`,
          reference.index,
          kept,
        );
      }
      parts.push(({ groups }) => groups[Number(number)], text.slice(number.length));
    }
  }
  parts.push(source.slice(kept));
  const plain = parts.every((part) => typeof part === "string") ? parts.join("") : undefined;
  if (plain !== undefined) return { ok: true, replacement: () => plain };
  return {
    ok: true,
    replacement: (match) =>
      parts.reduce<string>((text, part) => text + (typeof part === "string" ? part : (part(match) ?? "")), ""),
  };
}

function refused(message: string, start: number, end: number): ReplacementCheck {
  return { ok: false, error: { message, start, end } };
}
