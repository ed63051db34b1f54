#!/usr/bin/env -S node --disable-sigusr1 --max-semi-space-size=16 --initial-old-space-size=64 --single-threaded-gc --no-allocation-site-pretenuring --heap-growing-percent=50
// @ts-check
import module from "node:module";
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import { holdSignals } from "@headworks/process-signals";

// The options in the first line: no signal opens a debugger, not even before this file runs. Requests allocate short-lived
// garbage, which is cheapest in a limited young generation that one thread collects. V8 allocates nothing in the old
// generation because of its observations during the start (decision 017). When starting this file with a Node of your own,
// pass them, too.

const heldSignals = holdSignals();

if (Number(process.versions.node.split(".")[0]) < 24) {
  const instead = '"npx sluice" runs it with the one that "npm ci" installed';
  process.stderr.write(`Sluice needs Node 24; this is ${process.version}. ${instead}.\n`);
  process.exit(1);
}

// JavaScript, so that everything else can be loaded from the compile cache without type stripping (decision 022).

// In a folder of this user: write access to it allows to choose the code of this process.
if ((process.env["NODE_COMPILE_CACHE"] ?? "") === "") {
  const { directory } = module.enableCompileCache(cacheDirectory());
  // Threads and workers read the environment only; without the variable each of them would compile everything again.
  if (directory !== undefined) process.env["NODE_COMPILE_CACHE"] = cacheDirectory();
}

const { main } = await import("#main.ts");
await main(heldSignals);

function cacheDirectory() {
  const configured = process.env["XDG_CACHE_HOME"] ?? "";
  return join(isAbsolute(configured) ? configured : join(homedir(), ".cache"), "sluice", "compiled");
}
