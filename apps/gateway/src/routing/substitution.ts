/** A piece of a substitution: text, or a reference to a group or a path parameter. */
export type SubstitutionPiece =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "group"; readonly number: number }
  | { readonly kind: "name"; readonly name: string };

const REFERENCE = /\$(?:([0-9]+)|([A-Za-z_][A-Za-z0-9_]*)|\{(?:([0-9]+)|([A-Za-z_][A-Za-z0-9_]*))\})/g;

/** Parses `$1`, `${1}`, `$name` and `${name}`; any other `$` is literal. `$0` is the whole match. */
export function parseSubstitution(source: string): readonly SubstitutionPiece[] {
  const pieces: SubstitutionPiece[] = [];
  let at = 0;
  for (const match of source.matchAll(REFERENCE)) {
    if (match.index > at) pieces.push({ kind: "text", text: source.slice(at, match.index) });
    const number = match[1] ?? match[3];
    const name = match[2] ?? match[4];
    if (number !== undefined) pieces.push({ kind: "group", number: Number(number) });
    else if (name !== undefined) pieces.push({ kind: "name", name });
    at = match.index + match[0].length;
  }
  if (at < source.length) pieces.push({ kind: "text", text: source.slice(at) });
  return pieces;
}
