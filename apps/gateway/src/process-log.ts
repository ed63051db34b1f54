// Tested by ../test/cli-serve.test.ts
import { destination, pino, type Logger } from "pino";

/** A process's log: JSON lines on standard output, from `level` on. */
export function openProcessLog(level: string): Logger {
  return pino(
    {
      level,
      base: null,
      messageKey: "message",
      timestamp: () => `,"timestamp":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
    },
    // Asynchronous, and lossy when nobody reads: a stalled pipe must not stall the gateway.
    destination({ fd: 1, sync: false, maxLength: 4_194_304 }),
  );
}
