import { shownText, wireBytes } from "./snippet-request.ts";

/** Arguments of this size work on every system; Linux refuses more than 128 KiB. */
const MAX_ARGUMENT_BYTES = 32_768;
/** Longer bodies are written in base64: an escape costs four characters per byte. */
const MAX_ESCAPED_BYTES = 1024;
const BASE64_LINE = 76;

/**
 * One word of a POSIX shell for exactly these bytes (one character per byte, no NUL): bare, in single quotes, or as the
 * output of `printf` if they cannot be shown. Neither a shell nor its history expansion interprets any of it.
 */
export function shellWord(wire: string): string {
  if (/^[A-Za-z0-9_][A-Za-z0-9_./-]*$/u.test(wire)) return wire;
  const text = shownText(wireBytes(wire), { lineEnds: false });
  return text === undefined ? `"$(printf ${printfFormat(wireBytes(wire))})"` : quoted(text);
}

/** The body as one word; undefined if it cannot be shown or is too long for an argument. */
export function bodyWord(body: Uint8Array): string | undefined {
  if (body.length > MAX_ARGUMENT_BYTES) return undefined;
  const text = shownText(body, { lineEnds: true });
  // Some shells expand history references in multi-line words, even quoted ones.
  return text === undefined || (text.includes("\n") && text.includes("!")) ? undefined : quoted(text);
}

/** A command that writes the body to standard output; `after` goes below the command's line. */
export function bodyCommand(body: Uint8Array): { readonly command: string; readonly after: string } {
  if (body.length <= MAX_ESCAPED_BYTES) return { command: `printf ${printfFormat(body)}`, after: "" };
  const base64 = Buffer.from(body).toString("base64");
  const lines: string[] = [];
  for (let at = 0; at < base64.length; at += BASE64_LINE) lines.push(base64.slice(at, at + BASE64_LINE));
  return { command: "base64 -d <<'END-OF-BODY'", after: `\n${lines.join("\n")}\nEND-OF-BODY\n` };
}

/** A tool's changes to matching targets, in plain words: some shells interpret comments. */
export type TargetChange = readonly [pattern: RegExp, what: string];

/** Shell comments about each way in which a tool changes the captured target. */
export function changedTarget(tool: string, target: string, changes: readonly TargetChange[]): string {
  return changes
    .filter(([pattern]) => pattern.test(target))
    .map(([, what]) => `# ${tool} asks for another target: it ${what}\n`)
    .join("");
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** Letters and a few marks unchanged, everything else in octal: no leading `-`, no `%`, no `!`. */
function printfFormat(bytes: Uint8Array): string {
  let format = "";
  for (const [index, byte] of bytes.entries()) {
    const character = String.fromCharCode(byte);
    const isPlain = /[A-Za-z0-9 _./:;,=+@&?*<>(){}[\]~-]/u.test(character) && !(index === 0 && character === "-");
    format += isPlain ? character : `\\${byte.toString(8).padStart(3, "0")}`;
  }
  return `'${format}'`;
}
