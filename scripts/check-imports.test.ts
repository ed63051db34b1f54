import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { findImportProblems } from "./check-imports.ts";
import { fixtureTree } from "./fixture-tree.ts";
import { importZones } from "./import-rules.ts";
import { repositoryRoot } from "./source-tree.ts";
import { readWorkspaces } from "./workspaces.ts";

const manifest = (name: string, rest: object = {}): string => JSON.stringify({ name: `@headworks/${name}`, ...rest });

/** Enough workspaces for every rule to apply, without violations. */
const base: Readonly<Record<string, string>> = {
  "apps/capture-proxy/package.json": manifest("capture-proxy", { imports: { "#*": "./src/*" } }),
  "apps/capture-ui/package.json": manifest("capture-ui"),
  "packages/capture-contract/package.json": manifest("capture-contract", { exports: { ".": "./src/index.ts" } }),
  "packages/contract-kit/package.json": manifest("contract-kit", {
    exports: { ".": "./src/index.ts", "./client": "./src/client.ts", "./server": "./src/server.ts" },
  }),
  "packages/http1/package.json": manifest("http1", { exports: { ".": "./src/index.ts" } }),
  "packages/http-fields/package.json": manifest("http-fields", {
    exports: { ".": "./src/index.ts", "./content-coding": "./src/content-coding.ts" },
  }),
  "packages/testkit/package.json": manifest("testkit", { exports: { ".": "./src/index.ts" } }),
  "packages/http1/src/index.ts": 'export { parseHead } from "./head.ts";',
  "packages/http1/src/head.ts": "export const parseHead = 1;",
};

/** The problems of the base tree with some files on top, as `where: message` lines. */
function problemsWith(files: Readonly<Record<string, string>>): string[] {
  using tree = fixtureTree({ ...base, ...files });
  return findImportProblems(tree.root).map(({ where, message }) => `${where}: ${message}`);
}

test("a tree without violations has no problems", () => {
  const problems = problemsWith({
    "apps/capture-proxy/src/main.ts": 'import { createProxy } from "./proxy.ts"; import process from "node:process";',
    "apps/capture-proxy/src/proxy.ts": 'import { slices } from "./slices.ts"; import "#storage/database.ts";',
    "apps/capture-proxy/src/slices.ts": 'import "./slices/mocks/mocks.slice.ts";',
    "apps/capture-proxy/src/slices/mocks/mocks.slice.ts":
      'import "./mock-rule.ts"; import type { Database } from "#storage/database.ts"; import "#exchange/phases.ts"; import { Type } from "typebox"; import type { Logger } from "pino"; import { ApiError } from "#api/api-error.ts";',
    "apps/capture-proxy/src/slices/mocks/mock-rule.ts": "export const rule = 1;",
    "apps/capture-proxy/src/slices/mocks/mock-rule.test.ts":
      'import "node:net"; import "@headworks/testkit"; import "#proxy.ts";',
    "apps/capture-proxy/src/exchange/phases.ts": 'import { parseHead } from "@headworks/http1";',
    "apps/capture-proxy/src/storage/database.ts": 'import "node:sqlite"; import "node:worker_threads";',
    "apps/capture-ui/src/main.tsx":
      'import React from "react"; import "@headworks/contract-kit/client"; import "./app.css";',
    "packages/http-fields/src/content-coding.ts": 'import "node:zlib";',
  });
  assert.deepEqual(problems, []);
});

describe("a forbidden import is reported with its line and the alternative", () => {
  const proxy = "apps/capture-proxy/src";
  const cases: readonly [name: string, file: string, source: string, expected: RegExp][] = [
    [
      "the network in the engine",
      `${proxy}/exchange/pipeline.ts`,
      '\nimport "node:net";',
      /pipeline\.ts:2: imports "node:net": proxy\/exchange may not import node:net\. .*Receive it as a parameter/u,
    ],
    [
      "a network subpath in the engine",
      `${proxy}/exchange/p.ts`,
      'import "node:dns/promises";',
      /may not import node:dns/u,
    ],
    ["files in the engine", `${proxy}/exchange/p.ts`, 'import "node:fs/promises";', /may not import node:fs/u],
    [
      "a feature in the engine",
      `${proxy}/exchange/p.ts`,
      'import "#slices/mocks/mocks.slice.ts";',
      /proxy\/exchange may not import proxy\/slices/u,
    ],
    ["an HTTP server on the data path", `${proxy}/connection/c.ts`, 'import "node:http";', /may not import node:http/u],
    [
      "one slice in another",
      `${proxy}/slices/focus/focus.slice.ts`,
      'import "#slices/mocks/mocks.slice.ts";',
      /slices\/mocks from .*slices\/focus/u,
    ],
    [
      "one slice in another, as type",
      `${proxy}/slices/focus/focus.slice.ts`,
      'import type { A } from "#slices/mocks/mocks.slice.ts";',
      /slices\/mocks from .*slices\/focus/u,
    ],
    [
      "storage values in a slice",
      `${proxy}/slices/focus/focus.store.ts`,
      'import { open } from "#storage/database.ts";',
      /types of proxy\/storage only: write "import type"/u,
    ],
    [
      "a slice's inside in the API",
      `${proxy}/api/bind.ts`,
      'import type { A } from "#slices/mocks/mock-rule.ts";',
      /only .*\*\.slice\.ts may be imported/u,
    ],
    [
      "slice values in the API",
      `${proxy}/api/bind.ts`,
      'import { a } from "#slices/mocks/mocks.slice.ts";',
      /types of proxy\/slices only/u,
    ],
    [
      "SQLite outside the store",
      `${proxy}/settings/settings.ts`,
      'import { DatabaseSync } from "node:sqlite";',
      /node:sqlite may be imported in proxy\/storage, gateway\/storage only/u,
    ],
    [
      "the web framework in a slice",
      `${proxy}/slices/focus/focus.operations.ts`,
      'import Fastify from "fastify";',
      /fastify may be imported in proxy\/api, gateway\/admin only/u,
    ],
    [
      "making a logger in a slice",
      `${proxy}/slices/focus/focus.operations.ts`,
      'import { pino } from "pino";',
      /pino may be imported in proxy\/composition, gateway\/composition only/u,
    ],
    [
      "the API's inside in a slice, past its error type",
      `${proxy}/slices/focus/focus.operations.ts`,
      'import { ApiError } from "#api/api-error.ts"; import { bind } from "#api/bind.ts";',
      /"#api\/bind\.ts": proxy\/slices may not import proxy\/api\./u,
    ],
    [
      "the composition root in a command",
      `${proxy}/cli/call.ts`,
      'import "#proxy.ts";',
      /only cli\/serve\.ts may start the service/u,
    ],
    [
      "the testkit in production code",
      `${proxy}/upstream/dial.ts`,
      'import "@headworks/testkit";',
      /may not import testkit/u,
    ],
    [
      "the other app in an app",
      "apps/capture-ui/src/a.ts",
      'import "../../capture-proxy/src/proxy.ts";',
      /leaves the workspace/u,
    ],
    [
      "an app in a package",
      "packages/http1/src/chunk.ts",
      'import "../../../apps/capture-proxy/src/proxy.ts";',
      /may not import proxy\/composition/u,
    ],
    [
      "one format package in another",
      "packages/http1/src/chunk.ts",
      'import "@headworks/http-fields";',
      /imports no other package of ours/u,
    ],
    [
      "a registry package in a format package",
      "packages/http1/src/chunk.ts",
      'import "commander";',
      /may not import the package commander/u,
    ],
    [
      "Node in the contract",
      "packages/capture-contract/src/focus.ts",
      'import "node:crypto";',
      /may not import node:crypto/u,
    ],
    [
      "the validator in the contract",
      "packages/capture-contract/src/focus.ts",
      'import "@headworks/contract-kit/server";',
      /may not import contract-kit\/server/u,
    ],
    ["Node in the UI", "apps/capture-ui/src/a.ts", 'import "node:path";', /may not import node:path/u],
    [
      "content codings in the UI",
      "apps/capture-ui/src/a.ts",
      'import "@headworks/http-fields/content-coding";',
      /may not import format:http-fields\/content-coding/u,
    ],
    [
      "an app's inside in an end-to-end test",
      "e2e/curl.test.ts",
      'import "../apps/capture-proxy/src/proxy.ts";',
      /use real processes from outside/u,
    ],
    [
      "a re-exported forbidden module",
      `${proxy}/exchange/p.ts`,
      'export { Socket } from "node:net";',
      /re-exports from "node:net"/u,
    ],
    ["a dynamic import", `${proxy}/exchange/p.ts`, 'await import("node:net");', /may not import node:net/u],
  ];
  for (const [name, file, source, expected] of cases) {
    test(name, () => {
      const problems = problemsWith({ [file]: source });
      assert.ok(
        problems.some((problem) => problem.startsWith(file) && expected.test(problem)),
        problems.join("\n"),
      );
    });
  }
});

describe("a specifier has the form that Node loads and the zones require", () => {
  const cases: readonly [name: string, file: string, source: string, expected: RegExp][] = [
    ["no ending", "packages/http1/src/a.ts", 'import "./head";', /end it in \.ts/u],
    ["the ending of a build", "packages/http1/src/a.ts", 'import "./head.js";', /end it in \.ts/u],
    ["a built-in without node:", "e2e/a.test.ts", 'import fs from "fs";', /write "node:fs"/u],
    [
      "a path to another package",
      "packages/http1/src/a.ts",
      'import "../../http-fields/src/index.ts";',
      /leaves the workspace; import @headworks\/http-fields by its package name/u,
    ],
    [
      "an entry that a package does not have",
      "e2e/a.test.ts",
      'import "@headworks/http1/head";',
      /has no such entry; its package\.json has: \./u,
    ],
    [
      "a relative path across folders of an app",
      "apps/capture-proxy/src/upstream/a.ts",
      'import "../exchange/p.ts";',
      /write "#exchange\/p\.ts"/u,
    ],
    [
      "another package's names passed on",
      "packages/capture-contract/src/a.ts",
      'export * from "@headworks/contract-kit";',
      /exports its own names only/u,
    ],
  ];
  for (const [name, file, source, expected] of cases) {
    test(`${name} is reported`, () => {
      const problems = problemsWith({ [file]: source });
      assert.ok(
        problems.some((problem) => expected.test(problem)),
        problems.join("\n"),
      );
    });
  }
});

test("an index.ts is only a package's entry", () => {
  const problems = problemsWith({
    "apps/capture-proxy/src/exchange/index.ts": "",
    "packages/http1/src/deep/index.ts": "",
  });
  assert.equal(problems.length, 2, problems.join("\n"));
  for (const problem of problems) assert.match(problem, /index\.ts is for a package's public entry only/u);
});

test("a file outside all zones is reported", () => {
  assert.match(problemsWith({ "apps/capture-proxy/src/new-folder/a.ts": "" }).join("\n"), /belongs to no zone/u);
});

test("a cycle of value imports is reported once with its path; one closed by a type import is allowed", () => {
  const loop = {
    "packages/http1/src/a.ts": 'import "./b.ts";',
    "packages/http1/src/b.ts": 'import { c } from "./c.ts";',
  };
  for (const closing of ['export { a } from "./a.ts";', 'import type { A } from "./a.ts";']) {
    const problems = problemsWith({ ...loop, "packages/http1/src/c.ts": closing });
    assert.equal(problems.length, 1, problems.join("\n"));
    assert.match(problems[0] ?? "", /a\.ts > .*b\.ts > .*c\.ts > .*a\.ts/u);
  }
  assert.deepEqual(problemsWith({ ...loop, "packages/http1/src/c.ts": 'const a = import("./a.ts");' }), []);
});

test("a Node module imported through other files of a browser entry is reported with its path", () => {
  const problems = problemsWith({
    "packages/http-fields/src/index.ts":
      'export { a } from "./media-type.ts"; export type { B } from "./content-coding.ts";',
    "packages/http-fields/src/media-type.ts": 'import { b } from "./content-coding.ts";',
    "packages/http-fields/src/content-coding.ts": 'import zlib from "node:zlib";',
  });
  const browser = problems.filter((problem) => problem.includes("browsers load this file"));
  assert.equal(browser.length, 1, problems.join("\n"));
  assert.match(browser[0] ?? "", /index\.ts > .*media-type\.ts > .*content-coding\.ts/u);
});

test("every name in the table is a zone of the table", () => {
  const names = importZones.map((zone) => zone.name);
  assert.equal(new Set(names).size, names.length);
  for (const zone of importZones) {
    for (const other of [...zone.ours, ...(zone.typesOf ?? [])]) {
      const known = other.endsWith("*")
        ? names.some((name) => name.startsWith(other.slice(0, -1)))
        : names.includes(other);
      assert.ok(known, `${zone.name} names ${other}`);
    }
  }
});

test("workspaces are read with their export entries", () => {
  const workspaces = readWorkspaces(repositoryRoot);
  const kit = workspaces.find((workspace) => workspace.folder === "packages/contract-kit");
  assert.equal(kit?.name, "@headworks/contract-kit");
  assert.equal(kit.entries.get("./client"), "packages/contract-kit/src/client.ts");
  assert.equal(kit.hasHashImports, false);
  assert.equal(workspaces.find((workspace) => workspace.folder === "apps/capture-proxy")?.hasHashImports, true);
});
