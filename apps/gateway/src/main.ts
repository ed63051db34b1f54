// Tested by ../test/cli-serve.test.ts
import { constants } from "node:os";

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
  // Opened by who reads it.
  get stdin() {
    return process.stdin;
  },
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
