#!/usr/bin/env -S node --max-semi-space-size=16 --single-threaded-gc
// Tested by ../test/cli-serve.test.ts
// The options in the first line: requests are short-lived garbage, which is cheapest in a bounded young generation that
// one thread collects. Whoever starts this file by hand may pass them along.
import { constants } from "node:os";
import { destination, pino } from "pino";
import { runCommandLine } from "#cli/program.ts";

process.exitCode = await runCommandLine(process.argv.slice(2), {
  environment: process.env,
  stdout: process.stdout,
  stderr: process.stderr,
  createLogger: async (level) =>
    await Promise.resolve(
      pino(
        {
          level,
          base: null,
          messageKey: "message",
          timestamp: () => `,"timestamp":"${new Date().toISOString()}"`,
          formatters: { level: (label) => ({ level: label }) },
        },
        // Asynchronous, and lossy when nobody reads: a stalled pipe must not stall the gateway.
        destination({ fd: 1, sync: false, maxLength: 4_194_304 }),
      ),
    ),
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
