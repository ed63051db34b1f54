import assert from "node:assert/strict";
import { mkdir, readFile, readdir, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { peer, runProcess, temporaryDirectory } from "@headworks/testkit";
import fc from "fast-check";
import { curlText } from "./curl-text.ts";
import { curlCmdText, curlPowershellText } from "./curl-windows-text.ts";
import { fetchText } from "./fetch-text.ts";
import { httpieText } from "./httpie-text.ts";
import { pythonText } from "./python-text.ts";
import { startRecordingOrigin } from "../../../test/recording-origin.ts";
import type { RecordedRequest, RecordingOrigin } from "../../../test/recording-origin.ts";
import type { Field, SnippetRequest } from "./snippet-request.ts";
import { wgetText } from "./wget-text.ts";

interface Case extends Partial<Omit<SnippetRequest, "body" | "fields">> {
  readonly is: string;
  readonly fields?: readonly Field[];
  readonly body?: string | Uint8Array;
}

const ALL_BYTES = Uint8Array.from({ length: 256 }, (_, index) => index);

const NASTY: readonly Case[] = [
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
  { is: "a method nobody knows", method: "PURGE" },
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

function requestOf(given: Case, authority: string): SnippetRequest {
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
function wire(request: SnippetRequest): RecordedRequest {
  const fields = request.fields.filter(([name, value]) => name !== "Connection" || value === "Upgrade");
  return {
    line: `${request.method} ${request.target} ${request.version}`,
    fields,
    body: Buffer.from(request.body),
  };
}

const ENVIRONMENT = { http_proxy: "", HTTP_PROXY: "", no_proxy: "*", LC_ALL: "C.UTF-8" };

async function runShell(text: string, shell = "sh", more: Readonly<Record<string, string>> = {}): Promise<void> {
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

function onlyRequest(origin: RecordingOrigin): RecordedRequest {
  const [request, ...more] = origin.take();
  assert.ok(request !== undefined, "nothing arrived");
  assert.equal(more.length, 0, "more than one request arrived");
  return request;
}

/** curl writes Host first and Content-Length behind what it was told. */
function sameAsSent(arrived: RecordedRequest, request: SnippetRequest): void {
  const expected = wire(request);
  assert.equal(arrived.line, expected.line);
  assert.deepEqual(arrived.fields, expected.fields);
  assert.ok(arrived.body.equals(expected.body), `the body differs: ${arrived.body.length} bytes`);
}

const curl = peer("curl");
const bash = peer("bash");
const python = peer("python3");
const wget = peer("wget");
const httpie = peer("http");

test("curl sends the request again byte for byte", { skip: curl.skip }, async (t) => {
  await using origin = await startRecordingOrigin();
  for (const given of NASTY) {
    await t.test(given.is, async () => {
      const request = requestOf(given, origin.authority);
      await runShell(curlText(request));
      sameAsSent(onlyRequest(origin), request);
    });
  }
});

test("curl spells Host and Content-Length as the request did, in their places", { skip: curl.skip }, async () => {
  await using origin = await startRecordingOrigin();
  const fields: Field[] = [
    ["x-first", "1"],
    ["HOST", origin.authority],
    ["content-length", "3"],
    ["x-last", "2"],
  ];
  const request = { ...requestOf({ is: "", method: "POST", body: "abc" }, origin.authority), fields };
  await runShell(curlText(request));
  sameAsSent(onlyRequest(origin), request);
  const others: Field[] = [
    ["host", "other.test"],
    ["content-length", "0"],
    ["x-last", "2"],
  ];
  const empty = { ...request, method: "DELETE", fields: others };
  await runShell(curlText({ ...empty, body: new Uint8Array(0) }));
  assert.deepEqual(onlyRequest(origin).fields, empty.fields);
  assert.doesNotMatch(curlText({ ...request, version: "HTTP/2" }), /host:|content-length:/i);
});

const fieldName = fc.stringMatching(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,12}$/);
const RESERVED =
  /^(?:host|content-length|transfer-encoding|connection|keep-alive|proxy-connection|expect|te|upgrade|trailer)$/i;
const fieldValue = fc
  .array(fc.oneof(fc.integer({ min: 0x20, max: 0x7e }), fc.integer({ min: 0x80, max: 0xff })), { maxLength: 40 })
  .map((codes) => String.fromCharCode(...codes).trim())
  .filter((value) => !/^[\x20\xa0\t]|[\x20\xa0\t]$/.test(value));
const randomRequest = fc.record({
  method: fc.constantFrom("GET", "POST", "PUT", "PATCH", "DELETE", "QUERY"),
  target: fc.stringMatching(/^\/[!"$-~]{0,30}$/),
  fields: fc.array(
    fc.tuple(
      fieldName.filter((name) => !RESERVED.test(name)),
      fieldValue,
    ),
    { maxLength: 6 },
  ),
  body: fc.oneof(
    fc.constant(new Uint8Array(0)),
    fc.uint8Array({ maxLength: 3000 }),
    fc.string({ maxLength: 300, unit: "grapheme" }).map((text) => Buffer.from(text)),
  ),
});

for (const shell of [
  { name: "sh", skip: false as const },
  { name: "bash", skip: bash.skip },
]) {
  test(`any request at all survives ${shell.name} and curl`, { skip: curl.skip || shell.skip }, async () => {
    await using origin = await startRecordingOrigin();
    const property = fc.asyncProperty(randomRequest, async (given) => {
      const request = requestOf({ is: "random", ...given }, origin.authority);
      await runShell(curlText(request), shell.name);
      sameAsSent(onlyRequest(origin), request);
    });
    await fc.assert(property, { numRuns: 40 });
  });
}

/**
 * Runs programs, one after another, in one interpreter: to start one for each takes longer than all of them. Gives what
 * each of them sent.
 */
async function sentByEach(
  origin: RecordingOrigin,
  interpreter: readonly [path: string, ...args: string[]],
  programs: readonly string[],
): Promise<readonly RecordedRequest[]> {
  await using directory = await temporaryDirectory();
  const files = programs.map((_, index) => directory.file(`${index}.mjs`));
  await Promise.all(programs.map(async (text, index) => await writeFile(files[index] ?? "", text)));
  const [path, ...args] = interpreter;
  const { code, stderr } = await runProcess(path, [...args, ...files], { env: ENVIRONMENT, timeoutMs: 60_000 });
  assert.equal(code, 0, stderr);
  const sent = origin.take();
  assert.equal(sent.length, programs.length, "each program sends one request");
  return sent;
}

const RUN_PYTHON = `import runpy, sys
for path in sys.argv[1:]:
    runpy.run_path(path, run_name="__main__")`;

test("Python sends every field in its place", { skip: python.skip }, async (t) => {
  await using origin = await startRecordingOrigin();
  const requests = NASTY.map((given) => requestOf(given, origin.authority));
  const sent = await sentByEach(origin, [python.path, "-c", RUN_PYTHON], requests.map(pythonText));
  for (const [index, request] of requests.entries()) {
    await t.test(NASTY[index]?.is, () => {
      const arrived = sent[index];
      assert.equal(arrived?.line, wire(request).line);
      assert.deepEqual(arrived.fields, request.fields);
      assert.ok(arrived.body.equals(Buffer.from(request.body)));
    });
  }
});

/** Fields that were asked for, whatever the tool adds and however it groups and spells them. */
function carries(arrived: RecordedRequest, request: SnippetRequest, except: ReadonlySet<string> = new Set()): void {
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
function saysWhatItDoesToFields(text: string, arrived: RecordedRequest, request: SnippetRequest): void {
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

const isLength = (name: string): boolean => name === "content-length";
const OF_THE_TRANSFER: ReadonlySet<string> = new Set(["host", "connection", "content-length", "transfer-encoding"]);

/** Targets that fetch rewrites. */
const REWRITTEN = /segments|hash|no URL has|shell syntax in the target|encode nothing|empty query|two slashes|brackets/;

const RUN_MODULES = "for (const path of process.argv.slice(1)) await import(path);";

test("fetch sends method, fields and body, binary ones too", async (t) => {
  await using origin = await startRecordingOrigin();
  const sendable = NASTY.filter(({ is }) => !/GET with a body|server as a whole|upgrade/.test(is));
  const requests = sendable.map((given) => requestOf(given, origin.authority));
  const texts = requests.map((request) => `process.noDeprecation = true;\n${fetchText(request)}`);
  const sent = await sentByEach(origin, [process.execPath, "--input-type=module", "-e", RUN_MODULES], texts);
  for (const [index, request] of requests.entries()) {
    const is = sendable[index]?.is ?? "";
    await t.test(is, () => {
      const [text = "", arrived] = [texts[index], sent[index]];
      assert.match(text, /^[\n\x20-\x7e]*$/, "only plain characters");
      assert.ok(arrived !== undefined);
      saysWhatItDoesToFields(text, arrived, request);
      if (!REWRITTEN.test(is)) assert.equal(arrived.line, `${request.method} ${request.target} HTTP/1.1`);
      carries(arrived, request);
      assert.ok(arrived.body.equals(Buffer.from(request.body)));
    });
  }
});

test("fetch says what it adds to a condition, and to a range of something coded", async () => {
  await using origin = await startRecordingOrigin();
  const conditions: Field[] = [
    ["If-None-Match", '"x"'],
    ["Cache-Control", "max-age=0"],
    ["Range", "bytes=0-1"],
    ["Accept-Encoding", "br"],
  ];
  const request = requestOf({ is: "", fields: conditions }, origin.authority);
  const text = fetchText(request);
  const { code, stderr } = await runProcess(process.execPath, ["--input-type=module", "-"], { input: text });
  assert.equal(code, 0, stderr);
  const arrived = onlyRequest(origin);
  saysWhatItDoesToFields(text, arrived, request);
  carries(arrived, request, new Set(["accept-encoding"]));
  assert.deepEqual(arrived.fields.find(([name]) => name === "Accept-Encoding")?.[1], "br, identity");
  assert.match(text, /^\/\/ fetch adds identity to Accept-Encoding$/m);
  const plain = requestOf({ is: "", fields: [["Range", "bytes=0-1"]] }, origin.authority);
  assert.doesNotMatch(fetchText(plain), /identity/);
});

test("fetch says what it leaves out", () => {
  const request = requestOf({ is: "", body: "x" }, "example.com");
  assert.match(fetchText(request), /^\/\/ fetch sends no body with this method/);
  assert.match(fetchText({ ...request, method: "TRACE" }), /^\/\/ fetch refuses this method/);
  for (const [target, first] of [
    ["/p%20a/../b?x=[1]&y='a'", /^\/\/ fetch asks for "\/b\?x=\[1\]&y=%27a%27" instead\n/],
    ["*", /^\/\/ fetch asks for "\/" instead\n/],
    ["/p%20a/b?x=[1]&y=%7B", /^\/\/ fetch adds fields/],
  ] as const) {
    assert.match(fetchText({ ...request, method: "DELETE", target, body: new Uint8Array(0) }), first, target);
  }
});

test("fields that a tool drops or changes are told in a comment, where there are such", () => {
  const given = requestOf({ is: "" }, "example.com");
  const upgrade: Field[] = [
    ["Connection", "Upgrade"],
    ["Upgrade", "x"],
    ["Expect", "100-continue"],
  ];
  const chunks: Field[] = [["Transfer-Encoding", "chunked"]];
  const value = (text: string): Field[] => [["X-A", text]];
  const cases: readonly (readonly [string, readonly Field[], (request: SnippetRequest) => string, boolean])[] = [
    ["// fetch leaves out fields that it refuses: connection, upgrade, expect", upgrade, fetchText, true],
    ["// fetch leaves out fields that it refuses: transfer-encoding", chunks, fetchText, true],
    ["// fetch leaves out", value("1"), fetchText, false],
    ["# wget sends the length of the body in place of chunks", chunks, wgetText, true],
    ["# wget sends the length", value("1"), wgetText, false],
    ["# HTTPie leaves out a backslash in a field", value("a\\;b"), httpieText, true],
    ["# HTTPie leaves out a backslash in a field", value("\\\\\\@"), httpieText, true],
    ["# HTTPie leaves out a backslash", value("a\\\\;b\\"), httpieText, false],
  ];
  for (const [comment, fields, textOf, isThere] of cases) {
    assert.equal(textOf({ ...given, fields }).includes(comment), isThere, `${comment} ${JSON.stringify(fields)}`);
  }
});

test("a script element that holds the text of fetch stays closed in", () => {
  const request = requestOf({ is: "", method: "POST", body: "</script><script>alert(1)</script>" }, "example.com");
  assert.ok(!fetchText(request).includes("<"));
});

/** Comments in plain words, if and only if the tool asked for another target. */
function saysWhatItAsksFor(text: string, arrived: RecordedRequest, request: SnippetRequest): void {
  const [comments = ""] = /^(?:# \w+ asks for another target: it [a-z ]+\n)*/u.exec(text) ?? [];
  assert.equal(comments !== "", arrived.line !== wire(request).line, `${comments}${arrived.line}`);
}

/** HTTPie runs the cases only that its own syntax could spoil. It writes fields in UTF-8 and methods in upper case. */
const FOR_HTTPIE =
  /no fields|all fields|backslash|lower-case names|hash|encoded|codes in|encode nothing|empty query|brackets|repeated|empty values|shell syntax|begins with|are UTF-8|cookies|dot segments|HEAD|nobody|without a body|DELETE|GET with|JSON|several lines|announces|looks like|every byte|long text|chunks/;

/** Stands in the shell where HTTPie would, and keeps what the shell gives it. */
const KEEP_CALL = `#!/bin/sh
printf '%s\\0' "$@" >"$KEPT/words"
case " $* " in *" --ignore-stdin "*) : >"$KEPT/input" ;; *) cat >"$KEPT/input" ;; esac
`;

/** Gives HTTPie's own program what the shell gave in each folder, in a process of its own that has it loaded already. */
const RUN_HTTPIE = `import os, runpy, sys
import httpie.core
program, *folders = sys.argv[1:]
for folder in folders:
    child = os.fork()
    if child == 0:
        os.dup2(os.open(folder + "/input", os.O_RDONLY), 0)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        words = open(folder + "/words", "rb").read().split(b"\\0")[:-1]
        sys.argv[:] = [program, *map(os.fsdecode, words)]
        runpy.run_path(program, run_name="__main__")
    if os.waitpid(child, 0)[1] != 0:
        sys.exit("HTTPie failed with what is in " + folder)`;

/**
 * What HTTPie sends for each command. The shell reads each of them; HTTPie itself, which takes most of a second to start,
 * is loaded once.
 */
async function sentByHttpie(origin: RecordingOrigin, commands: readonly string[]): Promise<readonly RecordedRequest[]> {
  await using directory = await temporaryDirectory();
  await mkdir(directory.file("bin"));
  await writeFile(directory.file("bin/http"), KEEP_CALL, { mode: 0o755 });
  const folders = commands.map((_, index) => directory.file(String(index)));
  for (const [index, folder] of folders.entries()) {
    await mkdir(folder);
    await runShell(commands[index] ?? "", "sh", {
      PATH: `${directory.file("bin")}:${process.env["PATH"]}`,
      KEPT: folder,
    });
  }
  await mkdir(directory.file("home"));
  const interpreter = /^#!(\S+)/u.exec(await readFile(httpie.path, "utf8"))?.[1] ?? python.path;
  const { code, stderr } = await runProcess(interpreter, ["-c", RUN_HTTPIE, httpie.path, ...folders], {
    cwd: directory.file("home"),
    env: { ...ENVIRONMENT, HOME: directory.file("home") },
    timeoutMs: 60_000,
  });
  assert.equal(code, 0, stderr);
  assert.deepEqual(await readdir(directory.file("home")), [], "HTTPie left something behind");
  const sent = origin.take();
  assert.equal(sent.length, commands.length, "each command sends one request");
  return sent;
}

test("HTTPie sends method, fields and body", { skip: httpie.skip }, async (t) => {
  await using origin = await startRecordingOrigin();
  const sendable = NASTY.filter(({ is }) => FOR_HTTPIE.test(is));
  const requests = sendable.map((given) => requestOf(given, origin.authority));
  const texts = requests.map(httpieText);
  const sent = await sentByHttpie(origin, texts);
  for (const [index, request] of requests.entries()) {
    const is = sendable[index]?.is ?? "";
    await t.test(is, () => {
      const [text = "", arrived] = [texts[index], sent[index]];
      assert.ok(arrived !== undefined);
      saysWhatItAsksFor(text, arrived, request);
      // What chunks add depends on the version of what HTTPie is made of.
      if (is !== "chunks") saysWhatItDoesToFields(text, arrived, request);
      const values = new Set(arrived.fields.map(([, value]) => value));
      const changed = request.fields.filter(
        ([name, value]) => !OF_THE_TRANSFER.has(name.toLowerCase()) && !values.has(value),
      );
      assert.equal(text.includes("# HTTPie leaves out a backslash in a field\n"), changed.length > 0);
      carries(arrived, request, new Set(changed.map(([name]) => name.toLowerCase())));
      assert.ok(arrived.body.equals(Buffer.from(request.body)));
    });
  }
});

test("what HTTPie cannot send is a comment that says why, and no command", async () => {
  const given = requestOf({ is: "" }, "example.com");
  const latin: SnippetRequest = { ...given, fields: [["X-Name", "caf\xe9"]] };
  const cases: readonly (readonly [SnippetRequest, RegExp])[] = [
    [{ ...given, method: "M-SEARCH" }, /^# HTTPie cannot send this request: .*method.*$/],
    [{ ...given, method: "m!x'" }, /^# HTTPie cannot send this request: .*method.*$/],
    [latin, /^# HTTPie cannot send this request: .*UTF-8.*$/],
    [{ ...latin, method: "A1" }, /^# HTTPie [^\n]*method[^\n]*\n# HTTPie [^\n]*UTF-8[^\n]*$/],
  ];
  for (const [request, expected] of cases) {
    assert.match(httpieText(request), expected);
    await runShell(httpieText(request));
  }
  const utf8: SnippetRequest = { ...given, fields: [["X-Name", Buffer.from("café").toString("latin1")]] };
  assert.match(httpieText(utf8), /^http /mu);
});

test("wget sends method, fields and body", { skip: wget.skip }, async (t) => {
  await using origin = await startRecordingOrigin();
  for (const given of NASTY) {
    if (/server as a whole|HTTP\/1.0|lower case with/.test(given.is)) continue;
    await t.test(given.is, async () => {
      const request = requestOf(given, origin.authority);
      await runShell(wgetText(request));
      const arrived = onlyRequest(origin);
      saysWhatItAsksFor(wgetText(request), arrived, request);
      saysWhatItDoesToFields(wgetText(request), arrived, request);
      carries(arrived, request);
      assert.ok(arrived.body.equals(Buffer.from(request.body)));
    });
  }
});

/** Does with the text what PowerShell would: writes the files, gives curl the here-string or the file. */
async function runPowershellText(text: string, folder: string): Promise<void> {
  const args: string[] = [];
  for (const [, name, base64] of text.matchAll(
    /WriteAllBytes\(\$(\w+), \[Convert\]::FromBase64String\('([^']*)'\)\)/gu,
  )) {
    await writeFile(`${folder}/${name}`, Buffer.from(base64 ?? "", "base64"));
    args.push(...(name === "body" ? ["--data-binary", `@${folder}/body`] : ["--config", `${folder}/request`]));
  }
  const hereString = /@'\n([\s\S]*)'@ \| curl\.exe --config -/u.exec(text)?.[1];
  // The text ends at the first line that begins with '@, wherever that is.
  assert.ok(hereString === undefined || !/^'@/mu.test(hereString), "the here-string ends too early");
  if (hereString !== undefined) args.push("--config", "-");
  const { code, stderr } = await runProcess("curl", args, { input: hereString ?? "", env: ENVIRONMENT });
  assert.equal(code, 0, stderr);
}

test("curl reads from PowerShell's text what sends the request again", { skip: curl.skip }, async (t) => {
  await using origin = await startRecordingOrigin();
  for (const given of NASTY) {
    await t.test(given.is, async () => {
      await using directory = await temporaryDirectory();
      const request = requestOf(given, origin.authority);
      const text = curlPowershellText(request);
      assert.match(text, /^[\n\x20-\x7e]*$/, "only plain characters");
      await runPowershellText(text, directory.path);
      sameAsSent(onlyRequest(origin), request);
    });
  }
});

/** Does with the text what cmd.exe would, for the few commands that it uses. */
async function runCmdText(text: string, folder: string): Promise<void> {
  const files = new Map<string, string>();
  for (const line of text.trimEnd().split("\n")) {
    assert.ok(line.length < 8191, "a line that cmd takes");
    const echo = /^>>?"%TEMP%\\([\w.-]+)" echo ([A-Za-z0-9+/=]+)$/u.exec(line);
    if (echo) files.set(echo[1] ?? "", `${files.get(echo[1] ?? "") ?? ""}${echo[2]}`);
    else if (line.startsWith("certutil ")) {
      const name = /"%TEMP%\\([\w-]+)" >nul$/u.exec(line)?.[1] ?? "";
      await writeFile(`${folder}/${name}`, Buffer.from(files.get(`${name}.b64`) ?? "", "base64"));
    } else {
      const isPlain = !line.includes("%TEMP%");
      const words = [...line.replaceAll("%TEMP%\\", `${folder}/`).matchAll(/"([^"]*)"|(\S+)/gu)];
      if (isPlain) assert.match(line, /^[^%!^\\\n]*$/u, "nothing that cmd looks at");
      const args = words.slice(1).map(([, quoted, bare]) => quoted ?? bare ?? "");
      const { code, stderr } = await runProcess("curl", args, { env: ENVIRONMENT });
      assert.equal(code, 0, stderr);
    }
  }
}

test("curl reads from the text for cmd what sends the request again", { skip: curl.skip }, async (t) => {
  await using origin = await startRecordingOrigin();
  for (const given of NASTY) {
    await t.test(given.is, async () => {
      await using directory = await temporaryDirectory();
      const request = requestOf(given, origin.authority);
      await runCmdText(curlCmdText(request), directory.path);
      sameAsSent(onlyRequest(origin), request);
    });
  }
});

test("over TLS curl is told the version, since it would choose another one", () => {
  const request = { ...requestOf({ is: "" }, "example.com"), scheme: "https" as const };
  assert.match(curlText(request), /--http1\.1/);
  assert.match(curlText({ ...request, version: "HTTP/2" }), /--http2\b/);
  assert.match(curlText({ ...request, version: "HTTP/1.0" }), /--http1\.0/);
});

test("a simple request makes a command that people can read", () => {
  const request = requestOf({ is: "", method: "POST", body: '{"a":1}', fields: [["Accept", "*/*"]] }, "example.com");
  assert.equal(
    curlText(request),
    [
      "curl 'http://example.com/path?a=1&b=2'",
      "--request POST",
      "-H 'Accept: */*'",
      "-H 'User-Agent:'",
      "-H 'Content-Type:'",
      `--data-raw '{"a":1}'`,
    ].join(" \\\n  "),
  );
});
