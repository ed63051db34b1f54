import assert from "node:assert/strict";
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { runProcess, temporaryDirectory } from "@headworks/testkit";
import { repositoryRoot } from "./source-tree.ts";

/** Reports at exit whether Node loaded its type stripping. */
const TELL = `data:text/javascript,process.on("exit", () =>
  console.error("strips types:", process.moduleLoadList.some((name) => name.includes("amaro"))))`;

/** An older Node, as far as the launchers check. */
const OLDER = `data:text/javascript,import module from "node:module";
  delete module.enableCompileCache;
  Object.defineProperty(process, "versions", { value: { ...process.versions, node: "20.20.2" } });
  Object.defineProperty(process, "version", { value: "v20.20.2" });
  module.syncBuiltinESMExports();`;

for (const launcher of ["apps/capture-proxy/bin/weir.js", "apps/gateway/bin/sluice.js"]) {
  test(`${launcher} strips no types once the compile cache is warm`, async () => {
    await using cache = await temporaryDirectory();
    const version = async (): Promise<string> => {
      const { code, stderr } = await runProcess(
        process.execPath,
        ["--disable-warning=ExperimentalWarning", "--import", TELL, join(repositoryRoot, launcher), "--version"],
        { env: { NODE_COMPILE_CACHE: "", XDG_CACHE_HOME: cache.path } },
      );
      assert.equal(code, 0);
      return stderr.trim();
    };
    assert.deepEqual([await version(), await version()], ["strips types: true", "strips types: false"]);
  });

  test(`${launcher} names the required Node, and how to install it, to an older one`, async () => {
    const arguments_ = ["--import", OLDER, join(repositoryRoot, launcher), "--version"];
    const { code, stdout, stderr } = await runProcess(process.execPath, arguments_);
    assert.deepEqual([code, stdout], [1, ""]);
    assert.match(stderr, /^\w+ needs Node 24; this is v20\.20\.2\. "npx \w+" runs it .*\n$/);
  });

  for (const cacheHome of ["", "relative"]) {
    test(`${launcher} keeps no compile cache in the current folder, with XDG_CACHE_HOME "${cacheHome}"`, async () => {
      await using directory = await temporaryDirectory();
      const [cwd, home] = [directory.file("cwd"), directory.file("home")];
      for (const folder of [cwd, home]) mkdirSync(folder);
      const env = { NODE_COMPILE_CACHE: "", XDG_CACHE_HOME: cacheHome, HOME: home };
      const { code } = await runProcess(process.execPath, [join(repositoryRoot, launcher), "--version"], { cwd, env });
      assert.deepEqual([code, readdirSync(cwd), readdirSync(home)], [0, [], [".cache"]]);
    });
  }
}
