import { pino, type Logger } from "pino";

/** A line of the log as it would be printed. */
export type LogLine = Readonly<Record<string, unknown>>;

/** A logger whose lines a test reads. */
export interface LogLines {
  readonly log: Logger;
  readonly lines: readonly LogLine[];
  /** Lines with this code. */
  coded(code: string): readonly LogLine[];
  /** Everything that was printed, for looking for secrets. */
  readonly text: string;
}

export function logLines(): LogLines {
  const lines: LogLine[] = [];
  let text = "";
  const write = (line: string): void => {
    text += line;
    const parsed: unknown = JSON.parse(line);
    if (typeof parsed === "object" && parsed !== null) lines.push({ ...parsed });
  };
  return {
    log: pino({ level: "trace" }, { write }),
    lines,
    coded: (code) => lines.filter((line) => line["code"] === code),
    get text() {
      return text;
    },
  };
}
