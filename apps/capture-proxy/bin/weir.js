#!/usr/bin/env -S node --disable-sigusr1 --max-semi-space-size=16 --initial-old-space-size=64 --single-threaded-gc --no-allocation-site-pretenuring --invocation-count-for-turbofan=500 --no-memory-reducer
// @ts-check
import module from "node:module";
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import { holdSignals } from "@headworks/process-signals";

// The options in the first line: no signal opens a debugger, not even before this file runs. Short-lived objects may not
// grow to a hundred megabytes before V8 looks at them, and one thread collects, since the proxy's garbage is little and the
// threads' coordination cost a tenth of each request. Nothing is made in the old generation by what V8 saw while the process was starting (decision 017), and what each connection runs
// is optimized for good after hundreds of them, not thousands (decision 030), and stays so while there are none (decision
// 031). Whoever starts this file by hand may pass them along.

const heldSignals = holdSignals();

if (Number(process.versions.node.split(".")[0]) < 24) {
  const instead = '"npx weir" runs it with the one that "npm ci" installed';
  process.stderr.write(`Weir needs Node 24; this is ${process.version}. ${instead}.\n`);
  process.exit(1);
}

// JavaScript, so that the rest can come out of the compile cache without what makes JavaScript of TypeScript (decision 022).

// Programs that Weir starts get the environment as it was.
const environment = { ...process.env };

// In a folder of this user's own: whoever can write there can decide what this process runs.
if ((process.env["NODE_COMPILE_CACHE"] ?? "") === "") {
  const { directory } = module.enableCompileCache(cacheDirectory());
  // Threads look at the environment only; without this each of them would compile everything anew.
  if (directory !== undefined) process.env["NODE_COMPILE_CACHE"] = cacheDirectory();
}

const { main } = await import("#main.ts");
await main(environment, heldSignals);

function cacheDirectory() {
  const home = homedir();
  if (process.platform === "win32") return join(process.env["LOCALAPPDATA"] ?? home, "weir", "compile-cache");
  if (process.platform === "darwin") return join(home, "Library", "Caches", "weir", "compile-cache");
  const asked = process.env["XDG_CACHE_HOME"] ?? "";
  return join(isAbsolute(asked) ? asked : join(home, ".cache"), "weir", "compile-cache");
}
