import type { Invocation } from "#cli/invocation.ts";

/** Runs the command line. `heldSignals` returns the signals received meanwhile and restores their effect. */
export async function main(heldSignals: Invocation["heldSignals"]): Promise<void> {
  // Ignore EPIPE: the reader may close early, as `head` does.
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
    // Opened only when read.
    get stdin() {
      return process.stdin;
    },
    stdout: process.stdout,
    stderr: process.stderr,
    createLogger: async (level) => (await import("#process-log.ts")).openProcessLog(level),
    heldSignals,
    exitNow: (code) => process.exit(code),
  });
}
