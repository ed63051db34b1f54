#!/usr/bin/env -S node --disable-sigusr1 --max-semi-space-size=16 --initial-old-space-size=64 --single-threaded-gc --no-allocation-site-pretenuring --heap-growing-percent=50
// @ts-check
import module from "node:module";
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import { holdSignals } from "@headworks/process-signals";

// The options in the first line: no signal opens a debugger, not even before this file runs; requests are short-lived
// garbage, which is cheapest in a bounded young generation that one thread collects, and outside of which nothing is made
// because of what V8 saw while the process was starting (decision 017). Whoever starts this file by hand may pass them along.

const heldSignals = holdSignals();

if (Number(process.versions.node.split(".")[0]) < 24) {
  const instead = '"npx sluice" runs it with the one that "npm ci" installed';
  process.stderr.write(`Sluice needs Node 24; this is ${process.version}. ${instead}.\n`);
  process.exit(1);
}

// JavaScript, so that the rest can come out of the compile cache without what makes JavaScript of TypeScript (decision 022).

// In a folder of this user's own: whoever can write there can decide what this process runs.
if ((process.env["NODE_COMPILE_CACHE"] ?? "") === "") {
  const { directory } = module.enableCompileCache(cacheDirectory());
  // Threads and workers look at the environment only; without this each of them would compile everything anew.
  if (directory !== undefined) process.env["NODE_COMPILE_CACHE"] = cacheDirectory();
}

const { main } = await import("#main.ts");
await main(heldSignals);

function cacheDirectory() {
  const asked = process.env["XDG_CACHE_HOME"] ?? "";
  return join(isAbsolute(asked) ? asked : join(homedir(), ".cache"), "sluice", "compiled");
}
