import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { peer, runProcess, spawnProcess, temporaryDirectory, waitUntil } from "./index.ts";

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

test("a temporary directory is removed with everything in it", async () => {
  let path: string;
  {
    await using directory = await temporaryDirectory();
    path = directory.path;
    await mkdir(directory.file("a", "b"), { recursive: true });
    await writeFile(directory.file("a", "b", "c"), "x");
    assert.ok(existsSync(path));
  }
  assert.equal(existsSync(path), false);
});

test("a program runs with input, environment and arguments", async () => {
  const script =
    'process.stdin.on("data", (d) => process.stdout.write(d)); console.error(process.env.X, process.argv[1]); process.exitCode = 3;';
  const exit = await runProcess(process.execPath, ["-e", script, "argument"], { input: "hé", env: { X: "y" } });
  assert.deepEqual(exit, { code: 3, signal: null, stdout: "hé", stderr: "y argument\n" });
});

test("output is awaited, and the process is gone afterwards", async () => {
  let pid: number;
  {
    await using child = await spawnProcess(process.execPath, [
      "-e",
      'console.log("port 1234"); setInterval(() => {}, 1000)',
    ]);
    pid = child.pid;
    assert.equal((await child.waitForOutput(/port ([0-9]+)/))[1], "1234");
    assert.ok(isAlive(pid));
  }
  assert.equal(isAlive(pid), false);
});

test("a process that ignores SIGTERM is killed after the grace", { skip: process.platform === "win32" }, async () => {
  await using child = await spawnProcess(process.execPath, [
    "-e",
    'process.on("SIGTERM", () => {}); setInterval(() => {}, 1000); console.log("ready")',
  ]);
  await child.waitForOutput(/ready/);
  assert.equal((await child.stop("SIGTERM", 50)).signal, "SIGKILL");
});

test("a program left behind by a killed child is ended too", { skip: process.platform === "win32" }, async () => {
  const child = await spawnProcess("sh", ["-c", "sleep 1000 & echo $!; kill -KILL $$"]);
  const orphan = Number((await child.waitForOutput(/[0-9]+/))[0]);
  await child.stop("SIGTERM", 50);
  await waitUntil(() => !isAlive(orphan), { what: "the end of the orphan" });
});

test("waiting for output that never comes tells what came instead", async () => {
  await using child = await spawnProcess(process.execPath, ["-e", 'console.log("other"); process.exitCode = 4;']);
  await assert.rejects(child.waitForOutput(/wanted/), /ended \(4\)[^]*other/);
});

test("a program that cannot be started rejects", async () => {
  await assert.rejects(spawnProcess("no-such-program-here"), /ENOENT/);
});

test("a program that does not end is killed and reported", async () => {
  const run = runProcess(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { timeoutMs: 200 });
  await assert.rejects(run, /did not end/);
});

test("the first peer that is there is taken; a missing one is a reason to skip, and a failure in CI", (t) => {
  const before = process.env["CI"];
  t.after(() => {
    if (before === undefined) delete process.env["CI"];
    else process.env["CI"] = before;
  });
  delete process.env["CI"];
  assert.equal(peer("node").skip, false);
  assert.deepEqual(peer("no-such-program-here", "node"), peer("node"));
  assert.equal(peer("no-such-a", "no-such-b").skip, "none of no-such-a, no-such-b is installed");
  assert.deepEqual(peer("no-such-program-here"), { path: "", skip: "no-such-program-here is not installed" });
  process.env["CI"] = "true";
  assert.throws(() => peer("no-such-program-here"), /nothing may be skipped/);
});
