import assert from "node:assert/strict";
import { appendFileSync, existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { temporaryDirectory, waitUntil } from "@headworks/testkit";
import { runInside, serveWeir, startWeir, weir } from "./cli-rig.ts";
import type { ServingWeir } from "./cli-rig.ts";

let served: ServingWeir;
before(async () => {
  served = await serveWeir();
});
after(() => served[Symbol.asyncDispose]());

const logs = (...args: string[]) => runInside(["logs", ...args, "--api-url", served.api]);
const logPath = (): string => `${served.dataDir}/logs/weir.log`;

test("status tells the file, the rules in force and how writing goes", async () => {
  const { code, stdout } = await logs("status");
  assert.equal(code, 0);
  assert.match(stdout, /^file +\/.*\/logs\/weir\.log \(.*B\)$/m);
  assert.match(stdout, /^new file +daily, at most 100 MiB$/m);
  assert.match(stdout, /^kept +0 of at most 7 rotated files$/m);
  assert.match(stdout, /^form +text, level info$/m);
  assert.match(stdout, /^traffic +not logged$/m);
  assert.doesNotMatch(stdout, /problem|rotated to|Rotated file/);
});

test("config changes what is said, and tells what waits for a restart", async () => {
  const { code, stdout, stderr } = await logs(
    "config",
    "--max-files",
    "3",
    "--rotation",
    "size",
    "--size-mb",
    "20",
    "--json-format",
  );
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^kept +0 of at most 3 rotated files$/m);
  assert.match(stdout, /^new file +size \(20 MiB\), at most 100 MiB$/m);
  assert.match(stdout, /^after a restart +rotation, json_format$/m);
  const traffic = await logs(
    "config",
    "--debug-logging-enabled",
    "--debug-logging-level",
    "headers",
    "--debug-logging-host-filter",
    "*.test",
  );
  assert.match(traffic.stdout, /^traffic +headers of \*\.test: 0 events, 0 lost$/m, traffic.stderr);
  assert.equal((await logs("config", "--rotation", "size")).code, 1);
});

test("rotate prints the name of the rotated file, and lists it", async () => {
  const { code, stdout } = await logs("rotate");
  assert.equal(code, 0);
  const [, path = ""] = /^rotated to +(\/.*\/logs\/weir\.log\.\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d)$/m.exec(stdout) ?? [];
  assert.match(readFileSync(path, "utf8"), /Weir has started/);
  assert.ok(stdout.includes(path.split("/").at(-1) ?? "?"));
  assert.match(stdout, /^Rotated file +Size +Last line$/m);
  assert.equal(readFileSync(logPath(), "utf8"), "");
});

test("tail prints the last lines, and with -f goes on, over a rotation, until it is interrupted", async () => {
  appendFileSync(logPath(), "one\ntwo\nthree\n");
  const last = await logs("tail", "-n", "2");
  assert.deepEqual([last.code, last.stdout], [0, "two\nthree\n"]);
  await using child = await startWeir(["logs", "tail", "-f", "-n", "1", "--api-url", served.api]);
  await child.waitForOutput(/^three$/m, 20_000);
  appendFileSync(logPath(), "four\n");
  await weir(["logs", "rotate", "--api-url", served.api]);
  appendFileSync(logPath(), "five\n");
  await child.waitForOutput(/^five$/m, 20_000);
  process.kill(child.pid, "SIGINT");
  const { code, stdout } = await child.exited;
  assert.deepEqual([code, stdout], [130, "three\nfour\nfive\n"]);
});

test("a number of lines that makes no sense is refused, and so is a service that is not there", async () => {
  assert.equal((await logs("tail", "-n", "x")).code, 2);
  const { code, stderr } = await runInside(["logs", "tail", "--api-url", "http://127.0.0.1:1"]);
  assert.equal(code, 1);
  assert.match(stderr, /^weir: /);
});

test("--log-path, or its variable, puts the log elsewhere, for its user alone, and nothing into the data directory", async (context) => {
  await using directory = await temporaryDirectory();
  const [byFlag, byVariable] = [directory.file("a", "weir.log"), directory.file("b", "other.log")];
  for (const [path, args, env] of [
    [byFlag, ["-l", byFlag, "--log-rotation", "never"], { WEIR_LOG_PATH: byVariable, WEIR_LOG_MAX_FILES: "4" }],
    [byVariable, [], { WEIR_LOG_PATH: byVariable }],
  ] as const) {
    await using other = await serveWeir(args, env);
    await waitUntil(() => existsSync(path) && readFileSync(path, "utf8").includes("Weir has started"));
    assert.equal(statSync(path).mode & 0o777, 0o600);
    const { stdout } = await runInside(["logs", "status", "--api-url", other.api]);
    assert.ok(stdout.includes(path), stdout);
    assert.equal(existsSync(join(other.dataDir, "logs")), false);
    if (path === byVariable) continue;
    await context.test("config tells which of the changed settings a flag or a variable overrides", async () => {
      const changes = ["--max-files", "5", "--rotation", "hourly"];
      const changed = await runInside(["logs", "config", ...changes, "--api-url", other.api]);
      assert.match(changed.stdout, /^overridden +rotation by flag, max_files by environment$/m, changed.stderr);
      assert.doesNotMatch(changed.stdout, /after a restart/);
    });
  }
});
