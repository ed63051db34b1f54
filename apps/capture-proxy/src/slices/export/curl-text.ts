import { curlOptions } from "./curl-options.ts";
import { bodyCommand, bodyWord, shellWord } from "./shell-words.ts";
import { sendsBody } from "./snippet-request.ts";
import type { SnippetRequest } from "./snippet-request.ts";

const SHORT_NAMES: Readonly<Record<string, string>> = { header: "-H" };

/**
 * A command for any POSIX shell that resends the request byte for byte except for fields of the connection: curl writes
 * Host first and Content-Length last in their usual spelling, and chooses chunk boundaries.
 */
export function curlText(request: SnippetRequest): string {
  const { url, options } = curlOptions(request);
  const words = options.map(([name, value]) => {
    const option = SHORT_NAMES[name] ?? `--${name}`;
    return value === undefined ? option : `${option} ${shellWord(value)}`;
  });
  const lines = [`curl ${shellWord(url)}`, ...words];
  if (!sendsBody(request)) return joined(lines);
  const word = bodyWord(request.body);
  if (word !== undefined) return joined([...lines, `--data-raw ${word}`]);
  const { command, after } = bodyCommand(request.body);
  const [first, ...rest] = [...lines, "--data-binary @-"];
  return joined([`${command} | ${first}`, ...rest]) + after;
}

function joined(lines: readonly string[]): string {
  return lines.join(" \\\n  ");
}
