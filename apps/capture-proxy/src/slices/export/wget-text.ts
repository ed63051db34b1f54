// Tested by snippets.test.ts
import { bodyCommand, bodyWord, changedTarget, shellWord } from "./shell-words.ts";
import type { TargetChange } from "./shell-words.ts";
import { fieldsToTell, sendsBody, urlOf } from "./snippet-request.ts";
import type { Field, SnippetRequest } from "./snippet-request.ts";

const TARGET_CHANGES: readonly TargetChange[] = [
  [/^\*/u, "asks for a path"],
  [/^[^?;#]*\/\.{1,2}(?:[/?;#]|$)/u, "resolves dot segments"],
  [/#/u, "leaves out what stands behind a hash"],
  [/^[^#]*?(?:[^!#-;=?-[\]_a-z~]|%(?![\da-f]{2}))/iu, "encodes some characters"],
];

/**
 * A command for GNU Wget. Repeated fields are joined, since wget sends the last one only; wget adds Accept,
 * Accept-Encoding, Connection and, to a body, Content-Type where the request has none. Comments say where it asks for
 * another target.
 */
export function wgetText(request: SnippetRequest): string {
  return changedTarget("wget", request.target, TARGET_CHANGES) + commandOf(request);
}

function commandOf(request: SnippetRequest): string {
  const fields = joinedFields(fieldsToTell(request).filter(([name]) => name.toLowerCase() !== "transfer-encoding"));
  const hasAgent = fields.some(([name]) => name.toLowerCase() === "user-agent");
  const options = [
    `--method=${shellWord(request.method)}`,
    ...fields.map(([name, value]) => `--header=${shellWord(`${name}: ${value}`)}`),
    ...(hasAgent ? [] : ["--user-agent=''"]),
  ];
  const start = "wget --quiet --output-document=- --content-on-error --max-redirect=0";
  const url = shellWord(urlOf(request));
  if (!sendsBody(request)) return joined([start, ...options, url]);
  const word = bodyWord(request.body);
  if (word !== undefined) return joined([start, ...options, `--body-data=${word}`, url]);
  // wget wants to know the length of a file beforehand, so a pipe will not do.
  const { command, after } = bodyCommand(request.body);
  const write = after === "" ? `${command} >"$body"` : `${command} >"$body"${after.trimEnd()}`;
  const wget = joined([start, ...options, '--body-file="$body"', url]);
  return `body=$(mktemp)\n${write}\n${wget}\nrm -f -- "$body"\n`;
}

function joinedFields(fields: readonly Field[]): Field[] {
  const joinedByName = new Map<string, Field>();
  for (const [name, value] of fields) {
    const lower = name.toLowerCase();
    const before = joinedByName.get(lower);
    const separator = lower === "cookie" ? "; " : ", ";
    joinedByName.set(lower, before === undefined ? [name, value] : [before[0], `${before[1]}${separator}${value}`]);
  }
  return [...joinedByName.values()];
}

function joined(lines: readonly string[]): string {
  return lines.join(" \\\n  ");
}
