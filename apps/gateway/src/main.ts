#!/usr/bin/env -S node --max-semi-space-size=16 --initial-old-space-size=64 --single-threaded-gc --no-allocation-site-pretenuring --heap-growing-percent=50
// Tested by ../test/cli-serve.test.ts
// The options in the first line: requests are short-lived garbage, which is cheapest in a bounded young generation that
// one thread collects, and outside of which nothing is made because of what V8 saw while the process was starting (decision
// 017). Whoever starts this file by hand may pass them along.
import { enableCompileCache } from "node:module";
import { constants, homedir } from "node:os";
import { join } from "node:path";

// In a folder of this user's own: whoever can write there can decide what this process runs.
if (process.env["NODE_COMPILE_CACHE"] === undefined) enableCompileCache(cacheDirectory());

// Whoever reads may go before everything is said, as `head` does.
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE" && error.code !== "EIO") throw error;
  });
}

const { runCommandLine } = await import("#cli/program.ts");
const { version } = (await import("../package.json", { with: { type: "json" } })).default;

process.exitCode = await runCommandLine(process.argv.slice(2), {
  version,
  environment: process.env,
  stdout: process.stdout,
  stderr: process.stderr,
  createLogger: async (level) => (await import("#process-log.ts")).openProcessLog(level),
  untilStopped: async (hangup) => {
    process.on("SIGHUP", hangup);
    const signal = await new Promise<"SIGINT" | "SIGTERM">((resolve) => {
      process.once("SIGINT", () => resolve("SIGINT"));
      process.once("SIGTERM", () => resolve("SIGTERM"));
    });
    // A second signal ends at once.
    process.once(signal, () => process.exit(128 + constants.signals[signal]));
    return constants.signals[signal];
  },
});

function cacheDirectory(): string {
  const base = process.env["XDG_CACHE_HOME"];
  return join(base === undefined || base === "" ? join(homedir(), ".cache") : base, "sluice", "compiled");
}
