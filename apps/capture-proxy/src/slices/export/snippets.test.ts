import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { test } from "node:test";
import fc from "fast-check";
import { peer, runProcess, temporaryDirectory } from "@headworks/testkit";
import { type RecordedRequest, type RecordingOrigin, startRecordingOrigin } from "../../../test/recording-origin.ts";
import {
  carries,
  ENVIRONMENT,
  NASTY,
  onlyRequest,
  requestOf,
  runShell,
  saysWhatItAsksFor,
  saysWhatItDoesToFields,
  wire,
} from "../../../test/snippet-rig.ts";
import { curlText } from "./curl-text.ts";
import { curlCmdText, curlPowershellText } from "./export.slice.ts";
import { fetchText } from "./fetch-text.ts";
import { httpieText } from "./httpie-text.ts";
import { pythonText } from "./python-text.ts";
import type { Field, SnippetRequest } from "./snippet-request.ts";
import { wgetText } from "./wget-text.ts";

/** curl writes Host first and Content-Length last. */
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
 * Runs programs one after another in one interpreter, since starting one for each takes longer than running all of
 * them. Returns what each of them sent.
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

/** Emulates PowerShell: writes the files and gives curl the here-string or the file. */
async function runPowershellText(text: string, folder: string): Promise<void> {
  const args: string[] = [];
  for (const [, name, base64] of text.matchAll(
    /WriteAllBytes\(\$(\w+), \[Convert\]::FromBase64String\('([^']*)'\)\)/gu,
  )) {
    await writeFile(`${folder}/${name}`, Buffer.from(base64 ?? "", "base64"));
    args.push(...(name === "body" ? ["--data-binary", `@${folder}/body`] : ["--config", `${folder}/request`]));
  }
  const hereString = /@'\n([\s\S]*)'@ \| curl\.exe --config -/u.exec(text)?.[1];
  // A here-string ends at the first line that begins with '@.
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

/** Emulates the few commands of cmd.exe that the text uses. */
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
