// Tested by ../test/cli-serve.test.ts
import { destination, pino, type Logger } from "pino";

/** For so long what is left is offered to a reader that takes nothing, once the process is to end. */
const LAST_WORDS_MS = 1000;

let endsAtMs = Number.POSITIVE_INFINITY;

/** A process's log: JSON lines on standard output, from `level` on. */
export function openProcessLog(level: string): Logger {
  // Asynchronous, and lossy when nobody reads: a stalled pipe must not stall the gateway, nor keep it from ending.
  const output = destination({
    fd: 1,
    sync: false,
    maxLength: 4_194_304,
    retryEAGAIN: () => performance.now() < endsAtMs,
  });
  output.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EAGAIN" && error.code !== "EPIPE") throw error;
  });
  const flushSync = output.flushSync.bind(output);
  const flushIfRead = (): void => {
    try {
      flushSync();
    } catch {
      // The process ends whether somebody reads or not.
    }
  };
  output.flushSync = flushIfRead;
  // Before the library's own, which writes the rest.
  process.prependListener("exit", endProcessLog);
  return pino(
    {
      level,
      base: null,
      messageKey: "message",
      timestamp: () => `,"timestamp":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
    },
    output,
  );
}

/** The process is to end: what is left of the log is written, unless nobody takes it within a second. */
export function endProcessLog(): void {
  endsAtMs = Math.min(endsAtMs, performance.now() + LAST_WORDS_MS);
}
