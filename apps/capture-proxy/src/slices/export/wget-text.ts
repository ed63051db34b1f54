import { bodyCommand, bodyWord, changedTarget, shellWord } from "./shell-words.ts";
import type { TargetChange } from "./shell-words.ts";
import { changedFields, writtenFields, hasField, sendsBody, urlOf } from "./snippet-request.ts";
import type { Field, SnippetRequest } from "./snippet-request.ts";

const TARGET_CHANGES: readonly TargetChange[] = [
  [/^\*/u, "asks for a path"],
  [/^[^?;#]*\/\.{1,2}(?:[/?;#]|$)/u, "resolves dot segments"],
  [/#/u, "leaves out what stands behind a hash"],
  [/^[^#]*?(?:[^!#-;=?-[\]_a-z~]|%(?![\da-f]{2}))/iu, "encodes some characters"],
];

/**
 * A command for GNU Wget. Repeated fields are joined, since wget sends only the last one. Comments mention this and
 * where wget adds fields, sends a body in another form or requests another target, which no option prevents.
 */
export function wgetText(request: SnippetRequest): string {
  const hasChunks = hasField(request, "transfer-encoding");
  const changes = [
    ...changedFields("wget", request, addedFields(request, hasChunks), true),
    ...(hasChunks ? ["wget sends the length of the body in place of chunks"] : []),
  ];
  const comments = changes.map((change) => `# ${change}\n`).join("");
  return changedTarget("wget", request.target, TARGET_CHANGES) + comments + commandOf(request);
}

/** Methods for which wget announces an empty body; an explicit empty body would add a Content-Type. */
const ANNOUNCES_NONE = /^(?:PATCH|POST|PUT)$/iu;

function addedFields(request: SnippetRequest, hasChunks: boolean): string[] {
  const isAnnounced = needsBodyOption(request) || ANNOUNCES_NONE.test(request.method);
  return [
    "Accept",
    "Accept-Encoding",
    ...(needsBodyOption(request) ? ["Content-Type"] : []),
    ...(isAnnounced && !hasChunks ? ["Content-Length"] : []),
  ];
}

function needsBodyOption(request: SnippetRequest): boolean {
  return request.body.length > 0 || (sendsBody(request) && !ANNOUNCES_NONE.test(request.method));
}

function commandOf(request: SnippetRequest): string {
  const fields = joinedFields(writtenFields(request).filter(([name]) => name.toLowerCase() !== "transfer-encoding"));
  const hasAgent = fields.some(([name]) => name.toLowerCase() === "user-agent");
  const options = [
    `--method=${shellWord(request.method)}`,
    ...fields.map(([name, value]) => `--header=${shellWord(`${name}: ${value}`)}`),
    ...(hasAgent ? [] : ["--user-agent=''"]),
  ];
  const start = "wget --quiet --output-document=- --content-on-error --max-redirect=0";
  const url = shellWord(urlOf(request));
  if (!needsBodyOption(request)) return joined([start, ...options, url]);
  const word = bodyWord(request.body);
  if (word !== undefined) return joined([start, ...options, `--body-data=${word}`, url]);
  // wget needs the length of a file in advance, so a pipe does not work.
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
