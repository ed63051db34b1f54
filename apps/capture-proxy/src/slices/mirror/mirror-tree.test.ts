import assert from "node:assert/strict";
import { once } from "node:events";
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import fc from "fast-check";
import { anyCharacter, temporaryDirectory } from "@headworks/testkit";
import { mirrorPath } from "./mirror-path.ts";
import { MirrorTree } from "./mirror-tree.ts";
import type { TreeOptions } from "./mirror-tree.ts";

/** Writes a body and its sidecar; returns the path below the directory. */
function write(tree: MirrorTree, url: { host: string; path: string; port?: number }, text: string): string {
  const body = tree.temporaryFile();
  writeSync(body.fd, text);
  const sidecar = tree.temporaryFile();
  writeSync(sidecar.fd, "{}");
  const mirrored = mirrorPath(url.host, url.path, "text/html");
  const path = tree.write(mirrored, url.port, { body, besides: [{ suffix: ".meta.json", file: sidecar }] });
  return path.slice(tree.outputDir.length + 1);
}

async function inTree(
  run: (tree: MirrorTree, dir: string) => void | Promise<void>,
  options?: TreeOptions,
): Promise<void> {
  await using directory = await temporaryDirectory();
  const dir = directory.file("mirror");
  const tree = new MirrorTree(dir, options);
  try {
    await run(tree, dir);
  } finally {
    tree.close();
  }
}

test("where case is not told apart, URLs that differ in it keep different files, before and after a restart", async () => {
  const writeAll = (tree: MirrorTree, round: string): string[] =>
    ["/App.js", "/app.js", "/APP.js", "/Api/x.js", "/api/x.js"].map((path) =>
      write(tree, { host: "a.test", path }, `${path} ${round}`),
    );
  await inTree(
    (tree, dir) => {
      const first = writeAll(tree, "1");
      assert.equal(new Set(first.map((path) => path.toLowerCase())).size, first.length, first.join());
      assert.deepEqual([first[0], first[3]], ["a.test/App.js", "a.test/Api/x.js"], "the first spelling keeps its name");
      const again = new MirrorTree(dir, { ignoresCase: true });
      assert.deepEqual(writeAll(again, "2"), first);
      again.close();
      assert.equal(readFileSync(join(dir, first[1] ?? ""), "utf8"), "/app.js 2");
    },
    { ignoresCase: true },
  );
});

test("where case is told apart, names stay as they are", async () => {
  await inTree(
    (tree) => {
      const paths = ["/App.js", "/app.js"].map((path) => write(tree, { host: "a.test", path }, path));
      assert.deepEqual(paths, ["a.test/App.js", "a.test/app.js"]);
    },
    { ignoresCase: false },
  );
});

test("whatever the URL, its files can be created, and only below the directory", async () => {
  const piece = fc.oneof(
    fc.constantFrom(
      "..",
      "/",
      "\\",
      "%2e",
      "%2f",
      "%5c",
      "%00",
      "\0",
      " ",
      ".",
      "con",
      ".meta.json",
      ".request",
      ".weir-tmp",
    ),
    fc.constantFrom("index.html", "a", "a.js", "é", "%ff", "n".repeat(260), "?"),
    fc.string({ unit: anyCharacter, maxLength: 8 }),
  );
  const text = fc.array(piece, { maxLength: 8 }).map((parts) => parts.join(""));
  await using directory = await temporaryDirectory();
  const tree = new MirrorTree(directory.file("mirror"));
  const before = readdirSync(directory.path);
  const kept = new Map<string, string>();
  try {
    fc.assert(
      fc.property(text, text, fc.constantFrom(undefined, 8080, 9090), (host, path, port) => {
        const content = `${host} ${path}`;
        const written = write(tree, { host, path, ...(port !== undefined && { port }) }, content);
        const below = join(tree.outputDir, written);
        assert.ok(below.startsWith(`${tree.outputDir}/`));
        assert.equal(readFileSync(below, "utf8"), content);
        kept.set(written, content);
        assert.deepEqual(readdirSync(directory.path), before);
      }),
      { numRuns: 150 },
    );
    for (const [path, content] of kept) assert.equal(readFileSync(join(tree.outputDir, path), "utf8"), content);
    assert.deepEqual(readdirSync(join(tree.outputDir, ".weir-tmp")), []);
  } finally {
    tree.close();
  }
});

/**
 * Swaps a directory with a link to another one as fast as it can. Each swap moves it aside under a new name, since the
 * writer may recreate the directory meanwhile and non-empty directories cannot replace each other.
 */
const SWAPPER = `
  const { renameSync, rmSync, symlinkSync, unlinkSync } = require("node:fs");
  const { victim, outside, shared } = require("node:worker_threads").workerData;
  const state = new Int32Array(shared);
  for (let turn = 0; Atomics.load(state, 0) === 0; turn += 1) {
    const aside = victim + "-aside-" + turn;
    try {
      renameSync(victim, aside);
      symlinkSync(outside, victim);
      Atomics.add(state, 1, 1);
      unlinkSync(victim);
      renameSync(aside, victim);
    } catch {
      try { unlinkSync(victim); } catch {}
      try { renameSync(aside, victim); } catch {
        try { rmSync(aside, { recursive: true, force: true }); } catch {}
      }
    }
  }
`;

test("a directory that is exchanged for a link at any moment leads nothing outside", async (context) => {
  if (process.platform !== "linux") return context.skip("only Linux looks names up in a directory that is open");
  await using directory = await temporaryDirectory();
  const [dir, outside] = [directory.file("mirror"), directory.file("outside")];
  mkdirSync(outside);
  const tree = new MirrorTree(dir);
  write(tree, { host: "a.test", path: "/sub/x.js" }, "first");
  const shared = new SharedArrayBuffer(8);
  const state = new Int32Array(shared);
  const victim = join(dir, "a.test", "sub");
  const swapper = new Worker(SWAPPER, { eval: true, workerData: { victim, outside, shared } });
  const ended = once(swapper, "exit");
  let written = 0;
  const isEnough = (): boolean => written >= 100 && Atomics.load(state, 1) >= 100;
  for (let index = 0; index < 1_000_000 && !isEnough(); index += 1) {
    try {
      write(tree, { host: "a.test", path: `/sub/${index % 10}.js` }, "x");
      written += 1;
    } catch {
      // The directory was moved away at that moment: a dropped file.
    }
  }
  Atomics.store(state, 0, 1);
  await ended;
  assert.ok(isEnough(), `${written} files written, ${Atomics.load(state, 1)} links placed`);
  tree.close();
  assert.deepEqual(readdirSync(outside), []);
});

test("a link in the place of the directory for half-written files is refused", async () => {
  await using directory = await temporaryDirectory();
  const [dir, outside] = [directory.file("mirror"), directory.file("outside")];
  mkdirSync(dir);
  mkdirSync(outside);
  symlinkSync(outside, join(dir, ".weir-tmp"));
  assert.throws(() => new MirrorTree(dir), /is not a directory, and links are not followed/);
  assert.deepEqual(readdirSync(outside), []);
});

test("half-written files of a process that was killed go with the next start, young ones stay", async () => {
  await inTree((tree, dir) => {
    const folder = join(dir, ".weir-tmp");
    for (const name of ["old", "young"]) writeFileSync(join(folder, name), "x");
    mkdirSync(join(folder, "directory"));
    utimesSync(join(folder, "old"), 1, 1);
    new MirrorTree(dir).close();
    assert.deepEqual(readdirSync(folder).sort(), ["directory", "young"]);
    assert.ok(tree.isCurrent());
  });
});

test("a directory that is moved away or removed is noticed", async () => {
  await inTree((tree, dir) => {
    renameSync(dir, `${dir}-moved`);
    assert.equal(tree.isCurrent(), false);
    mkdirSync(dir);
    assert.equal(tree.isCurrent(), false);
    rmSync(dir, { recursive: true });
    renameSync(`${dir}-moved`, dir);
    assert.equal(tree.isCurrent(), true);
    rmSync(join(dir, ".weir-tmp"), { recursive: true });
    assert.equal(tree.isCurrent(), false);
  });
});

test("foreign entries in the list of ports do no harm", async () => {
  for (const text of ["", "[]", "{", '{"localhost":"x"}', '{"__proto__":1}', '"x"']) {
    await inTree((_tree, dir) => {
      writeFileSync(join(dir, ".weir-ports.json"), text);
      const tree = new MirrorTree(dir);
      assert.equal(write(tree, { host: "localhost", path: "/x.js", port: 3000 }, "x"), "localhost/x.js");
      assert.equal(write(tree, { host: "localhost", path: "/x.js", port: 4000 }, "y"), "localhost_4000/x.js");
      tree.close();
    });
  }
});
