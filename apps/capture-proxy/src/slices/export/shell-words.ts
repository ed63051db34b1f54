import { shownText, wireBytes } from "./snippet-request.ts";

/** A word of this many bytes may be an argument on every system; Linux refuses more than 128 KiB. */
const MAX_ARGUMENT_BYTES = 32_768;
/** Longer bodies are written in base64: an escape costs four characters per byte. */
const MAX_ESCAPED_BYTES = 1024;
const BASE64_LINE = 76;

/**
 * One word of a POSIX shell that means exactly these bytes (one per character, without NUL): bare, in single quotes,
 * or as the output of `printf` when they cannot be shown. Nothing in it is interpreted by any shell, nor by the
 * history of an interactive one.
 */
export function shellWord(wire: string): string {
  if (/^[A-Za-z0-9_][A-Za-z0-9_./-]*$/u.test(wire)) return wire;
  const text = shownText(wireBytes(wire), { lineEnds: false });
  return text === undefined ? `"$(printf ${printfFormat(wireBytes(wire))})"` : quoted(text);
}

/** The body as one word when it can be shown and is short enough to be an argument; undefined otherwise. */
export function bodyWord(body: Uint8Array): string | undefined {
  if (body.length > MAX_ARGUMENT_BYTES) return undefined;
  const text = shownText(body, { lineEnds: true });
  // Some shells look for history references in every line of a word that spans several, quotes or not.
  return text === undefined || (text.includes("\n") && text.includes("!")) ? undefined : quoted(text);
}

/** A command that writes the body to its standard output; `after` belongs behind the line on which the command stands. */
export function bodyCommand(body: Uint8Array): { readonly command: string; readonly after: string } {
  if (body.length <= MAX_ESCAPED_BYTES) return { command: `printf ${printfFormat(body)}`, after: "" };
  const base64 = Buffer.from(body).toString("base64");
  const lines: string[] = [];
  for (let at = 0; at < base64.length; at += BASE64_LINE) lines.push(base64.slice(at, at + BASE64_LINE));
  return { command: "base64 -d <<'END-OF-BODY'", after: `\n${lines.join("\n")}\nEND-OF-BODY\n` };
}

/** What a tool makes of the targets that a pattern finds, in plain words: some shells look into comments, too. */
export type TargetChange = readonly [pattern: RegExp, what: string];

/** Comments for a shell that say where a tool asks for another target than the one that was captured. */
export function changedTarget(tool: string, target: string, changes: readonly TargetChange[]): string {
  return changes
    .filter(([pattern]) => pattern.test(target))
    .map(([, what]) => `# ${tool} asks for another target: it ${what}\n`)
    .join("");
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** Letters and a few marks as they are, everything else in octal: no `-` at the start, no `%`, no `!`. */
function printfFormat(bytes: Uint8Array): string {
  let format = "";
  for (const [index, byte] of bytes.entries()) {
    const character = String.fromCharCode(byte);
    const isPlain = /[A-Za-z0-9 _./:;,=+@&?*<>(){}[\]~-]/u.test(character) && !(index === 0 && character === "-");
    format += isPlain ? character : `\\${byte.toString(8).padStart(3, "0")}`;
  }
  return `'${format}'`;
}
