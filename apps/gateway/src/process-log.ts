import { writeSync } from "node:fs";
import { DescriptorLines, reasonOf } from "@headworks/log-file";
import { pino, type Logger } from "pino";

const STANDARD_OUTPUT = 1;
const STANDARD_ERROR = 2;

/** A process's log: JSON lines on standard output from `level` on. Never blocks the gateway. */
export function openProcessLog(level: string): Logger {
  const output = new DescriptorLines({
    descriptor: STANDARD_OUTPUT,
    onProblem: (error) => writeToStderr(`The log cannot be written: ${reasonOf(error)}. Retrying every second`),
    onRecovered: (lostLines) => log.warn({ code: "log_recovered", lost_lines: lostLines }, "The log is written again"),
  });
  process.on("exit", () => output.flushSync());
  const log = pino(
    {
      level,
      base: null,
      messageKey: "message",
      timestamp: () => `,"timestamp":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
    },
    output,
  );
  return log;
}

function writeToStderr(sentence: string): void {
  try {
    writeSync(STANDARD_ERROR, `sluice: ${sentence}\n`);
  } catch {
    // Standard error may be on the same full disk.
  }
}
