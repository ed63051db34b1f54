import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { open } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import { temporaryDirectory } from "@headworks/testkit";
import { COMMAND_NAMES } from "#cli/program.ts";
import { MAIN, runInside, weir } from "./cli-rig.ts";

test("help names every command and needs no schema to do so", async () => {
  const { code, stdout, stderr } = await weir(["--help"]);
  assert.deepEqual([code, stderr], [0, ""]);
  for (const name of COMMAND_NAMES) assert.match(stdout, new RegExp(`^ {2}${name}[ |]`, "m"));
});

for (const name of COMMAND_NAMES) {
  test(`weir ${name} --help explains the command`, async () => {
    const { code, stdout, stderr } = await runInside([name, "--help"]);
    assert.deepEqual([code, stderr], [0, ""]);
    assert.match(stdout, new RegExp(`^Usage: weir ${name}`));
    assert.equal((await runInside(["help", name])).stdout, stdout);
  });
}

test("help finds a subcommand, too", async () => {
  const { stdout } = await runInside(["traffic", "list", "--help"]);
  assert.match(stdout, /^Usage: weir traffic list/);
  for (const args of [
    ["help", "traffic", "list"],
    ["traffic", "help", "list"],
    ["--json", "help", "traffic", "list"],
  ]) {
    assert.deepEqual(await runInside(args), { code: 0, stdout, stderr: "" });
  }
});

test("help for what is no command is the complaint that the command itself would be", async () => {
  for (const words of [["nope"], ["traffic", "nope"], ["ca", "nope"], ["--json", "traffic", "nope"]]) {
    const { code, stdout, stderr } = await runInside(["help", ...words]);
    assert.deepEqual([code, stdout], [2, ""], words.join(" "));
    assert.match(stderr, /^weir: unknown command 'nope'/);
    if (words[0] !== "--json") assert.deepEqual(await runInside(words), { code, stdout, stderr });
  }
});

test("a word that names no command is complained about, also where a flag asks for its help", async () => {
  for (const words of [["nope"], ["traffic", "nope"], ["ca", "nope"]]) {
    const complaint = await runInside(words);
    assert.equal(complaint.code, 2);
    for (const flag of ["--help", "-h"]) {
      assert.deepEqual(await runInside([...words, flag]), complaint);
      assert.deepEqual(await runInside([flag, ...words]), complaint);
    }
  }
});

test("weir run takes the address of the service and the time for an answer before its name, too", async () => {
  for (const option of [
    ["--api-url", "http:"],
    ["--timeout", "abc"],
  ]) {
    const behind = await runInside(["run", ...option, "--", "true"]);
    assert.equal(behind.code, 2, behind.stderr);
    assert.deepEqual(await runInside([...option, "run", "--", "true"]), behind);
  }
});

test("help for run starts no program, whatever stands behind it", async () => {
  const { stdout } = await runInside(["run", "--help"]);
  assert.deepEqual(await runInside(["help", "run", "no-such-program"]), { code: 0, stdout, stderr: "" });
});

test("the help of serve shows flags, variables, defaults and examples", async () => {
  const { stdout } = await runInside(["serve", "--help"]);
  for (const expected of [
    "-p, --proxy-port <number>",
    "default 8888",
    "env WEIR_PROXY_PORT",
    "--insecure-api",
    "weir serve --host 0.0.0.0",
    "Exit codes",
  ]) {
    assert.ok(stdout.replace(/\s+/g, " ").includes(expected), expected);
  }
});

test("the version is one line on standard output", async () => {
  const { code, stdout } = await weir(["--version"]);
  assert.deepEqual([code, /^\d+\.\d+\.\d+\n$/.test(stdout)], [0, true]);
});

const usage: readonly (readonly string[])[] = [
  ["frobnicate"],
  ["serve", "extra"],
  ["--no-such-flag"],
  ["serve", "--proxy-port"],
  ["run"],
  ["ca", "import", "one"],
  ["completion", "tcsh"],
  ["serve", "--data-dir", ""],
  ["serve", "--db-path="],
  ["serve", "--ca-cert-file", "", "--ca-key-file", ""],
  ["run", "--har", "", "--", "true"],
  ["run", "--data-dir", "", "--", "true"],
  ["doctor", "--cert-path", ""],
  ["ca", "export", "--output", ""],
  ["traffic", "body", "id", "response", "--output", ""],
];
for (const args of usage) {
  test(`weir ${args.join(" ")} is a usage error: exit code 2 and a sentence on standard error`, async () => {
    const { code, stdout, stderr } = await runInside(args);
    assert.deepEqual([code, stdout], [2, ""]);
    assert.match(stderr, /^weir: .+/);
  });
}

for (const [words, argument, what] of [
  [["traffic", "import-har", ""], "file", "file"],
  [["sessions", "import", ""], "file", "file"],
  [["grpc", "schemas", "add", "a.proto", ""], "files", "file"],
  [["ca", "import", "", "key.pem"], "certificate", "file"],
  [["ca", "import", "ca.pem", ""], "key", "file"],
  [["run", "--", ""], "command", "program"],
] as const) {
  test(`an empty ${argument} is a usage error that names it: weir ${words.map((word) => word || '""').join(" ")}`, async () => {
    const { code, stderr } = await runInside([...words]);
    const sentence = `weir: command-argument value '' is invalid for argument '${argument}'. It must name a ${what}.`;
    assert.deepEqual([code, stderr.split("\n")[0]], [2, sentence]);
  });
}

test("a reader that leaves early ends a command without a complaint", async () => {
  const main = fileURLToPath(new URL("../bin/weir.js", import.meta.url));
  const child = spawn(process.execPath, [main, "completion", "bash"], { stdio: ["ignore", "pipe", "pipe"] });
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  child.stdout.destroy();
  const [code] = (await once(child, "close")) as [number | null];
  assert.deepEqual([code, stderr], [0, ""]);
});

test("output that cannot be written is a sentence and exit code 1", { skip: !existsSync("/dev/full") }, async () => {
  const main = fileURLToPath(new URL("../bin/weir.js", import.meta.url));
  await using full = await open("/dev/full", "r+");
  for (const args of [["completion", "bash"], ["--help"]]) {
    const child = spawn(process.execPath, [main, ...args], { stdio: ["ignore", full.fd, "pipe"] });
    let stderr = "";
    child.stderr?.setEncoding("utf8").on("data", (text: string) => (stderr += text));
    const [code] = (await once(child, "close")) as [number | null];
    assert.equal(code, 1);
    assert.match(stderr, /^weir: Cannot write the output: ENOSPC.*\n$/);
  }
});

test("a log on a full disk does not keep the service from ending", { skip: !existsSync("/dev/full") }, async () => {
  await using directory = await temporaryDirectory();
  await using full = await open("/dev/full", "r+");
  const args = ["serve", "--json", "-p", "0", "-a", "0", "--data-dir", directory.path];
  const child = spawn(process.execPath, [MAIN, ...args], { stdio: ["ignore", "pipe", full.fd] });
  try {
    const [line] = (await once(child.stdout ?? child, "data")) as [Buffer];
    const { api } = JSON.parse(line.toString()) as { api: string };
    assert.equal((await fetch(new URL("/api/health", api))).status, 200);
    child.kill("SIGTERM");
    const [code] = (await once(child, "exit", { signal: AbortSignal.timeout(20_000) })) as [number | null];
    assert.equal(code, 0);
  } finally {
    child.kill("SIGKILL");
  }
});
