import assert from "node:assert/strict";
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { runProcess, temporaryDirectory } from "@headworks/testkit";
import { repositoryRoot } from "./source-tree.ts";

/** Says, at the end, whether Node loaded what takes the types out of TypeScript. */
const TELL = `data:text/javascript,process.on("exit", () =>
  console.error("strips types:", process.moduleLoadList.some((name) => name.includes("amaro"))))`;

for (const launcher of ["apps/capture-proxy/bin/weir.js", "apps/gateway/bin/sluice.js"]) {
  test(`${launcher} takes no types out once the compile cache is warm`, async () => {
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

  for (const asked of ["", "relative"]) {
    test(`${launcher} keeps no compile cache in the folder it is started in, with XDG_CACHE_HOME "${asked}"`, async () => {
      await using directory = await temporaryDirectory();
      const [cwd, home] = [directory.file("cwd"), directory.file("home")];
      for (const folder of [cwd, home]) mkdirSync(folder);
      const env = { NODE_COMPILE_CACHE: "", XDG_CACHE_HOME: asked, HOME: home };
      const { code } = await runProcess(process.execPath, [join(repositoryRoot, launcher), "--version"], { cwd, env });
      assert.deepEqual([code, readdirSync(cwd), readdirSync(home)], [0, [], [".cache"]]);
    });
  }
}
