import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { scanModuleReferences, tokenize } from "./import-scanner.ts";
import { repositoryRoot, sourceFiles } from "./source-tree.ts";

const ROOT = pathToFileURL(`${repositoryRoot}/`);

interface Manifest {
  readonly exports: Readonly<Record<string, string>>;
}

/** The file of an import from our packages. */
function packageFile(specifier: string): URL {
  const [, name = "", ...rest] = specifier.split("/");
  const folder = new URL(`packages/${name}/`, ROOT);
  const { exports } = JSON.parse(readFileSync(new URL("package.json", folder), "utf8")) as Manifest;
  const file = exports[rest.length === 0 ? "." : `./${rest.join("/")}`];
  assert.ok(file !== undefined, `${specifier} is not exported`);
  return new URL(file, folder);
}

/** All modules of our packages that the web UI imports, directly or not, and their other imports. */
function reachedByUi(): { modules: Set<string>; outside: string[] } {
  const modules = new Set<string>();
  const outside: string[] = [];
  const ui = sourceFiles(repositoryRoot).filter(
    (file) => /^apps\/capture-ui\/src\/.*\.tsx?$/u.test(file) && !file.includes(".test."),
  );
  const queue: URL[] = [];
  const follow = (specifier: string, from: URL): void => {
    if (specifier.startsWith("@headworks/")) queue.push(packageFile(specifier));
    else if (specifier.startsWith(".")) queue.push(new URL(specifier, from));
    else outside.push(`${from.pathname.slice(ROOT.pathname.length)}: ${specifier}`);
  };
  for (const file of ui) {
    for (const { specifier } of scanModuleReferences(readFileSync(new URL(file, ROOT), "utf8"))) {
      if (specifier.startsWith("@headworks/")) queue.push(packageFile(specifier));
    }
  }
  for (const url of queue) {
    if (modules.has(url.href)) continue;
    modules.add(url.href);
    for (const { specifier, typeOnly } of scanModuleReferences(readFileSync(url, "utf8"))) {
      if (!typeOnly) follow(specifier, url);
    }
  }
  return { modules, outside };
}

test("the web UI imports nothing from our packages that browsers lack", () => {
  const { modules, outside } = reachedByUi();
  assert.ok(modules.size > 60, `the walk follows imports, and found ${modules.size} modules`);
  assert.deepEqual(outside, []);
  for (const module of modules) {
    const words = tokenize(readFileSync(new URL(module), "utf8")).filter(({ kind }) => kind === "word");
    assert.equal(
      words.some(({ text }) => text === "Buffer" || text === "process"),
      false,
      module,
    );
  }
});
