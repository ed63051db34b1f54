#!/usr/bin/env -S node --disable-sigusr1 --max-semi-space-size=16 --initial-old-space-size=64 --single-threaded-gc --no-allocation-site-pretenuring --invocation-count-for-turbofan=500 --no-memory-reducer
// @ts-check
import module from "node:module";
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import { holdSignals } from "@headworks/process-signals";

// The options in the first line: no signal opens a debugger, not even before this file runs. The young generation is
// limited, and collected by one thread, because the proxy allocates little garbage, and coordinating several threads cost a
// tenth of each request. V8 allocates nothing in the old generation because of its observations during the start (decision
// 017), optimizes functions after hundreds of calls instead of thousands (decision 030), and keeps optimized code while
// there are no connections (decision 031). When starting this file with a Node of your own, pass them, too.

const heldSignals = holdSignals();

if (Number(process.versions.node.split(".")[0]) < 24) {
  const instead = '"npx weir" runs it with the one that "npm ci" installed';
  process.stderr.write(`Weir needs Node 24; this is ${process.version}. ${instead}.\n`);
  process.exit(1);
}

// JavaScript, so that everything else can be loaded from the compile cache without type stripping (decision 022).

// Programs started by Weir get the original environment.
const environment = { ...process.env };

// In a folder of this user: write access to it allows to choose the code of this process.
if ((process.env["NODE_COMPILE_CACHE"] ?? "") === "") {
  const { directory } = module.enableCompileCache(cacheDirectory());
  // Threads read the environment only; without the variable each of them would compile everything again.
  if (directory !== undefined) process.env["NODE_COMPILE_CACHE"] = cacheDirectory();
}

const { main } = await import("#main.ts");
await main(environment, heldSignals);

function cacheDirectory() {
  const home = homedir();
  if (process.platform === "win32") return join(process.env["LOCALAPPDATA"] ?? home, "weir", "compile-cache");
  if (process.platform === "darwin") return join(home, "Library", "Caches", "weir", "compile-cache");
  const configured = process.env["XDG_CACHE_HOME"] ?? "";
  return join(isAbsolute(configured) ? configured : join(home, ".cache"), "weir", "compile-cache");
}
