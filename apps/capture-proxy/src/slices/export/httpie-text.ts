// Tested by snippets.test.ts
import { bodyCommand, bodyWord, shellWord } from "./shell-words.ts";
import { fieldsToTell, hasField, sendsBody, urlOf } from "./snippet-request.ts";
import type { SnippetRequest } from "./snippet-request.ts";

const ADDED = ["User-Agent", "Accept", "Accept-Encoding", "Connection"];

/**
 * A command for HTTPie 3. It groups repeated fields, and takes away a backslash in front of `:`, `;`, `=` or `@` in a
 * field, which is the one thing of a request that cannot be told it.
 */
export function httpieText(request: SnippetRequest): string {
  const told = fieldsToTell(request);
  const names = new Set(told.map(([name]) => name.toLowerCase()));
  const items = told.map(([name, value]) => shellWord(value === "" ? `${name};` : `${name}: ${value}`));
  const removed = [...ADDED, ...(sendsBody(request) ? ["Content-Type"] : [])]
    .filter((name) => !names.has(name.toLowerCase()))
    .map((name) => `${name}:`);
  const ends = [shellWord(request.method), shellWord(urlOf(request)), ...items, ...removed];
  const options = hasField(request, "transfer-encoding") ? ["--chunked"] : [];
  const { body } = request;
  const word = body.length === 0 ? undefined : bodyWord(body);
  if (body.length === 0 || word !== undefined) {
    const raw = word === undefined ? [] : [`--raw ${word}`];
    return joined([["http", "--ignore-stdin", "--path-as-is", ...options].join(" "), ...raw, `-- ${ends.join(BREAK)}`]);
  }
  const { command, after } = bodyCommand(body);
  return `${joined([[`${command} | http`, "--path-as-is", ...options].join(" "), `-- ${ends.join(BREAK)}`])}${after}`;
}

const BREAK = " \\\n  ";

function joined(parts: readonly string[]): string {
  return parts.join(BREAK);
}
