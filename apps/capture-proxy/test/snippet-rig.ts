import assert from "node:assert/strict";
import { readdir, writeFile } from "node:fs/promises";
import { runProcess, temporaryDirectory } from "@headworks/testkit";
import type { Field, SnippetRequest } from "#slices/export/snippet-request.ts";
import type { RecordedRequest, RecordingOrigin } from "./recording-origin.ts";

interface Case extends Partial<Omit<SnippetRequest, "body" | "fields">> {
  readonly is: string;
  readonly fields?: readonly Field[];
  readonly body?: string | Uint8Array;
}

const ALL_BYTES = Uint8Array.from({ length: 256 }, (_, index) => index);

export const NASTY: readonly Case[] = [
  { is: "a plain GET", fields: [["Accept", "*/*"]] },
  { is: "no fields at all" },
  {
    is: "lower-case names in an unusual order",
    fields: [
      ["x-b", "1"],
      ["accept", "text/html"],
      ["X-A", "2"],
    ],
  },
  {
    is: "repeated fields",
    fields: [
      ["X-Same", "1"],
      ["x-same", "2"],
      ["X-Same", "1"],
    ],
  },
  {
    is: "empty values",
    fields: [
      ["X-Empty", ""],
      ["Accept", ""],
      ["User-Agent", ""],
    ],
  },
  {
    is: "quotation marks and shell syntax in a value",
    fields: [["X-Q", `'"\`$(touch pwned)\\;|&<>*?~#!{a,b}[c]%s%PATH%`]],
  },
  {
    is: "a value that begins with @",
    fields: [
      ["X-At", "@/etc/passwd"],
      ["X-Dash", "-o pwned"],
    ],
  },
  { is: "a backslash in front of a semicolon", fields: [["X-B", "a\\;b"]] },
  { is: "backslashes in front of others and an at sign", fields: [["X-B", "\\n\\\\@\\"]] },
  { is: "three backslashes in front of an at sign", fields: [["X-B", "\\\\\\@"]] },
  { is: "bytes above 127 that are UTF-8", fields: [["X-Name", Buffer.from("café ✓").toString("latin1")]] },
  { is: "bytes above 127 that are no UTF-8", fields: [["X-Name", "caf\xe9 'it''s' !x \\ %d"]] },
  { is: "text direction marks", fields: [["X-Bidi", Buffer.from("a\u202eb").toString("latin1")]] },
  { is: "a tab inside a value", fields: [["X-Tab", "a\tb"]] },
  {
    is: "names of unusual characters",
    fields: [
      ["!#$%&'*+-.^_`|~0", "token"],
      ["-X-Dash", "1"],
    ],
  },
  {
    is: "cookies and credentials",
    fields: [
      ["Cookie", "a=1; b='2'"],
      ["Authorization", "Basic dTpw"],
    ],
  },
  { is: "brackets in the target", target: "/a[1]{x,y}?q[]=1&r={2}" },
  { is: "dot segments", target: "/a/./b/../c/..?x=/../y" },
  { is: "encoded dot segments", target: "/a/%2e%2E/b/%2e" },
  { is: "percent signs that encode nothing", target: "/100%/%zz?%" },
  { is: "an empty query", target: "/a?" },
  { is: "characters encoded without need", target: "/%7Ea?%41" },
  { is: "codes in lower case", target: "/%c3%a9?%2f" },
  { is: "a hash in the target", target: "/a?b#c/../d" },
  { is: "characters that no URL has", target: `/a|b"c<d>e^f\`g\\h` },
  { is: "two slashes at the start", target: "//evil.example/x" },
  { is: "shell syntax in the target", target: "/$(touch${IFS}pwned);'&&touch+pwned" },
  { is: "the server as a whole", method: "OPTIONS", target: "*" },
  { is: "HEAD", method: "HEAD" },
  { is: "an unregistered method", method: "PURGE" },
  { is: "a method in lower case with a mark", method: "m!x'" },
  { is: "HTTP/1.0", version: "HTTP/1.0", fields: [["X-Old", "1"]] },
  { is: "POST without a body", method: "POST", fields: [["Content-Length", "0"]] },
  { is: "POST that announces nothing", method: "POST" },
  { is: "GET that announces no bytes", fields: [["Content-Length", "0"]] },
  { is: "DELETE with a body", method: "DELETE", body: "x=1" },
  { is: "GET with a body", method: "GET", body: '{"query": 1}', fields: [["Content-Type", "application/json"]] },
  { is: "JSON", method: "POST", body: '{"it\'s": "ok", "é": "\\n"}', fields: [["content-type", "application/json"]] },
  { is: "a body of several lines", method: "PUT", body: "one\ntwo 'x'\n\n$HOME `id`\n" },
  { is: "a body that looks like history", method: "PUT", body: "a !! b\n!-1\n!x" },
  { is: "line ends of the other kind", method: "PUT", body: "a\r\nb\r" },
  { is: "a body that begins with @", method: "POST", body: "@/etc/hostname" },
  { is: "a body that begins with -", method: "POST", body: "-n\u0000%s" },
  { is: "a body that looks like an option", method: "POST", body: "-d x" },
  { is: "every byte there is", method: "POST", body: ALL_BYTES },
  { is: "a body with NUL at the end", method: "POST", body: "abc\u0000" },
  { is: "a body of terminal commands", method: "POST", body: "\u001b]0;pwned\u0007\u001b[2J" },
  { is: "a long text", method: "POST", body: "line of text '\"$!\n".repeat(5000) },
  { is: "long binary data", method: "POST", body: Buffer.alloc(300_000, ALL_BYTES) },
  { is: "chunks", method: "POST", body: "in chunks", fields: [["Transfer-Encoding", "chunked"]] },
  {
    is: "a field of the connection",
    fields: [
      ["Connection", "keep-alive"],
      ["X-After", "1"],
    ],
  },
  {
    is: "an upgrade",
    fields: [
      ["Connection", "Upgrade"],
      ["Upgrade", "x-none"],
    ],
  },
  {
    is: "all fields that tools like to add",
    method: "PUT",
    body: "x",
    fields: [
      ["User-Agent", "mine/1"],
      ["Accept", "a/b"],
      ["Accept-Encoding", "br"],
      ["Accept-Language", "de"],
      ["Sec-Fetch-Mode", "cors"],
      ["Content-Type", "c/d"],
    ],
  },
  {
    is: "a type and no body",
    method: "PATCH",
    fields: [
      ["Content-Type", "c/d"],
      ["Content-Length", "0"],
    ],
  },
];

export function requestOf(given: Case, authority: string): SnippetRequest {
  const body = typeof given.body === "string" ? Buffer.from(given.body) : (given.body ?? new Uint8Array(0));
  const named = given.fields ?? [];
  const has = (lower: string): boolean => named.some(([name]) => name.toLowerCase() === lower);
  const length: Field[] = body.length > 0 && !has("transfer-encoding") ? [["Content-Length", String(body.length)]] : [];
  return {
    method: given.method ?? "GET",
    scheme: "http",
    authority,
    target: given.target ?? "/path?a=1&b=2",
    version: given.version ?? "HTTP/1.1",
    fields: [["Host", authority], ...named, ...length],
    body,
  };
}

/** What a tool has to reproduce: everything but what belongs to the connection. */
export function wire(request: SnippetRequest): RecordedRequest {
  const fields = request.fields.filter(([name, value]) => name !== "Connection" || value === "Upgrade");
  return {
    line: `${request.method} ${request.target} ${request.version}`,
    fields,
    body: Buffer.from(request.body),
  };
}

export const ENVIRONMENT = { http_proxy: "", HTTP_PROXY: "", no_proxy: "*", LC_ALL: "C.UTF-8" };

export async function runShell(text: string, shell = "sh", more: Readonly<Record<string, string>> = {}): Promise<void> {
  await using directory = await temporaryDirectory();
  await writeFile(directory.file("command.sh"), text);
  const { code, stderr } = await runProcess(shell, ["command.sh"], {
    cwd: directory.path,
    env: { ...ENVIRONMENT, HOME: directory.path, ...more },
    timeoutMs: 20_000,
  });
  assert.equal(code, 0, `${stderr}\n${text.slice(0, 2000)}`);
  assert.deepEqual(await readdir(directory.path), ["command.sh"], "the text left something behind");
}

export function onlyRequest(origin: RecordingOrigin): RecordedRequest {
  const [request, ...more] = origin.take();
  assert.ok(request !== undefined, "nothing arrived");
  assert.equal(more.length, 0, "more than one request arrived");
  return request;
}

const isLength = (name: string): boolean => name === "content-length";

export const OF_THE_TRANSFER: ReadonlySet<string> = new Set([
  "host",
  "connection",
  "content-length",
  "transfer-encoding",
]);

/** Fields that were asked for, whatever the tool adds and however it groups and spells them. */
export function carries(
  arrived: RecordedRequest,
  request: SnippetRequest,
  except: ReadonlySet<string> = new Set(),
): void {
  const skipped = new Set(["host", "connection", "content-length", "transfer-encoding", ...except]);
  const gather = (fields: readonly Field[]): Map<string, string> => {
    const gathered = new Map<string, string>();
    for (const [name, value] of fields) {
      const lower = name.toLowerCase();
      const before = gathered.get(lower);
      gathered.set(lower, before === undefined ? value : `${before}${lower === "cookie" ? "; " : ", "}${value}`);
    }
    return gathered;
  };
  const found = gather(arrived.fields);
  for (const [name, value] of gather(request.fields)) {
    if (!skipped.has(name)) assert.equal(found.get(name), value, name);
  }
}

/** Comments name what the tool added and say that it joined repeated fields, if and only if it did. */
export function saysWhatItDoesToFields(text: string, arrived: RecordedRequest, request: SnippetRequest): void {
  const isTold = (name: string): boolean => name === "content-length" || !OF_THE_TRANSFER.has(name);
  const names = (fields: readonly Field[]): string[] => fields.map(([name]) => name.toLowerCase()).filter(isTold);
  const [asked, seen] = [names(request.fields), names(arrived.fields)];
  const said = (what: string): string[] =>
    (new RegExp(`^(?:#|//) \\w+ ${what}: ([\\w, -]+)$`, "mu").exec(text)?.[1] ?? "")
      .toLowerCase()
      .split(", ")
      .toSorted();
  const added = seen.filter(
    (name) => !asked.includes(name) && !(isLength(name) && text.includes("in place of chunks")),
  );
  assert.deepEqual(said("adds fields that the request does not have").join(), added.toSorted().join(), text);
  const isLeftOut = asked.some(isLength) && !seen.some(isLength);
  assert.equal(said("leaves out fields that it refuses").some(isLength), isLeftOut, text);
  const isJoined =
    seen.filter((name) => asked.includes(name)).length < asked.filter((name) => seen.includes(name)).length;
  assert.equal(/^(?:#|\/\/) \w+ joins repeated fields$/mu.test(text), isJoined, text);
}

/** Comments in plain words, if and only if the tool asked for another target. */
export function saysWhatItAsksFor(text: string, arrived: RecordedRequest, request: SnippetRequest): void {
  const [comments = ""] = /^(?:# \w+ asks for another target: it [a-z ]+\n)*/u.exec(text) ?? [];
  assert.equal(comments !== "", arrived.line !== wire(request).line, `${comments}${arrived.line}`);
}
