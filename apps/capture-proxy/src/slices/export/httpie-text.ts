import { isUtf8 } from "node:buffer";
import { bodyCommand, bodyWord, changedTarget, shellWord } from "./shell-words.ts";
import type { TargetChange } from "./shell-words.ts";
import { changedFields, writtenFields, hasField, sendsBody, urlOf, wireBytes } from "./snippet-request.ts";
import type { Field, SnippetRequest } from "./snippet-request.ts";

const ADDED = ["User-Agent", "Accept", "Accept-Encoding", "Connection"];

const TARGET_CHANGES: readonly TargetChange[] = [
  [/^\*/u, "asks for a path"],
  [/^[^?#]*\?(?:#|$)/u, "leaves out an empty query"],
  [/#/u, "leaves out what stands behind a hash"],
  [/^[^#]*?(?:[^!#-;=?-Z_a-z~]|%(?![\dA-F]{2}))/u, "encodes some characters in a way of its own"],
  [/^[^?#]*\?[^#]*%(?:2[DEde]|3\d|[46][1-9A-Fa-f]|[57][\dAa]|5[Ff]|7[Ee])/u, "decodes some characters"],
];

/** HTTPie unescapes field separators, and a backslash before one cannot be escaped. */
const LOST_BACKSLASH = /^(?:[^\\]|\\[^:;=@])*\\[:;=@]/u;

/** Sent even if removed: the underlying libraries supply their own values. */
const ADDED_EVEN_SO = ["Accept-Encoding", "User-Agent"];

/** Methods for which HTTPie announces no empty body by default. */
const ANNOUNCES_A_BODY_ONLY = /^(?:GET|HEAD|OPTIONS)$/iu;

/**
 * A command for HTTPie 3. Comments say where it adds fields, changes one or requests another target; its grouping of
 * repeated fields is not mentioned. A request that HTTPie cannot send becomes a comment with the reason and no command.
 */
export function httpieText(request: SnippetRequest): string {
  const writesLength = request.body.length > 0 || !ANNOUNCES_A_BODY_ONLY.test(request.method);
  const fields = writtenFields(request, (name) => writesLength || name.toLowerCase() !== "content-length");
  const obstacles = obstaclesOf(request, fields);
  if (obstacles.length > 0) return obstacles.map((why) => `# HTTPie cannot send this request: ${why}`).join("\n");
  const addsLength = writesLength && !hasField(request, "transfer-encoding");
  const changes = [
    ...changedFields("HTTPie", request, addsLength ? [...ADDED_EVEN_SO, "Content-Length"] : ADDED_EVEN_SO, false),
    ...(fields.some(([, value]) => LOST_BACKSLASH.test(value)) ? ["HTTPie leaves out a backslash in a field"] : []),
  ];
  const comments = changes.map((change) => `# ${change}\n`).join("");
  return changedTarget("HTTPie", request.target, TARGET_CHANGES) + comments + commandOf(request, fields);
}

function commandOf(request: SnippetRequest, fields: readonly Field[]): string {
  const names = new Set(fields.map(([name]) => name.toLowerCase()));
  const items = fields.map(([name, value]) => shellWord(value === "" ? `${name};` : `${name}: ${value}`));
  const removed = [...ADDED, ...(sendsBody(request) ? ["Content-Type"] : [])]
    .filter((name) => !names.has(name.toLowerCase()))
    .map((name) => `${name}:`);
  const ends = [shellWord(request.method), shellWord(urlOf(request)), ...items, ...removed];
  const options = hasField(request, "transfer-encoding") ? ["--chunked"] : [];
  const { body } = request;
  const word = body.length === 0 ? undefined : bodyWord(body);
  if (body.length === 0 || word !== undefined) {
    // A separate word could be taken for an option.
    const raw = word === undefined ? [] : [`--raw=${word}`];
    return joined([["http", "--ignore-stdin", "--path-as-is", ...options].join(" "), ...raw, `-- ${ends.join(BREAK)}`]);
  }
  const { command, after } = bodyCommand(body);
  return `${joined([[`${command} | http`, "--path-as-is", ...options].join(" "), `-- ${ends.join(BREAK)}`])}${after}`;
}

/** Plain words only: some shells interpret comments. */
function obstaclesOf({ method }: SnippetRequest, fields: readonly Field[]): string[] {
  const isWritable = fields.every(([, value]) => isUtf8(wireBytes(value)));
  return [
    ...(/^[A-Za-z]+$/u.test(method) ? [] : ["it takes a method with other characters than letters for a URL"]),
    ...(isWritable ? [] : ["it writes header fields in UTF-8, and a value of this request is something else"]),
  ];
}

const BREAK = " \\\n  ";

function joined(parts: readonly string[]): string {
  return parts.join(BREAK);
}
