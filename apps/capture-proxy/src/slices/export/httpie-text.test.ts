import assert from "node:assert/strict";
import { mkdir, readFile, readdir, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { peer, runProcess, temporaryDirectory } from "@headworks/testkit";
import { httpieText } from "./httpie-text.ts";
import { startRecordingOrigin } from "../../../test/recording-origin.ts";
import type { RecordedRequest, RecordingOrigin } from "../../../test/recording-origin.ts";
import {
  carries,
  ENVIRONMENT,
  NASTY,
  OF_THE_TRANSFER,
  requestOf,
  runShell,
  saysWhatItAsksFor,
  saysWhatItDoesToFields,
} from "../../../test/snippet-rig.ts";
import type { SnippetRequest } from "./snippet-request.ts";

const httpie = peer("http");
const python = peer("python3");

/** Cases that HTTPie's own syntax could break. It writes fields in UTF-8 and methods in upper case. */
const FOR_HTTPIE =
  /no fields|all fields|backslash|lower-case names|hash|encoded|codes in|encode nothing|empty query|brackets|repeated|empty values|shell syntax|begins with|are UTF-8|cookies|dot segments|HEAD|nobody|without a body|DELETE|GET with|JSON|several lines|announces|looks like|every byte|long text|chunks/;

/** Replaces HTTPie in the shell and records its arguments and input. */
const KEEP_CALL = `#!/bin/sh
printf '%s\\0' "$@" >"$KEPT/words"
case " $* " in *" --ignore-stdin "*) : >"$KEPT/input" ;; *) cat >"$KEPT/input" ;; esac
`;

/** Runs HTTPie's program on the recorded arguments of each folder, in one process that loads it once. */
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
 * What HTTPie sends for each command. The shell parses each of them; HTTPie itself, which takes most of a second to
 * start, is loaded once.
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
      // The fields of chunked requests depend on the versions of HTTPie's libraries.
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
