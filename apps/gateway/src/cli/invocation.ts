import type { Logger } from "pino";

/** What a command may use of the world around it. */
export interface Invocation {
  /** The version of Sluice. */
  readonly version: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly stdin: AsyncIterable<Uint8Array>;
  readonly stdout: Output;
  readonly stderr: Output;
  /** Makes the process's logger: JSON lines on standard output, at the level `GATEWAY_LOG` asks for. */
  readonly createLogger: (level: string) => Promise<Logger>;
  /** The signals that came before a command could say what they mean, which from now on have their usual effect. */
  readonly heldSignals: () => readonly NodeJS.Signals[];
  /** Ends the process without waiting for anything. */
  readonly exitNow: (code: number) => void;
}

/** Standard output or standard error. */
export interface Output {
  write(text: string): unknown;
  readonly isTTY?: boolean;
}

/** Ends of commands, as shells know them. */
export const EXIT = {
  ok: 0,
  /** The command could not do what it was asked for; a document has errors. */
  failure: 1,
  /** A document has warnings, or the command line is not understood. */
  warnings: 2,
} as const;

/** The lines below a command's help. */
export function examples(...lines: readonly string[]): string {
  return `\nExamples:\n${lines.map((line) => `  ${line}\n`).join("")}`;
}

/** A variable that says something: an empty one is as good as none. */
export function variable(environment: Invocation["environment"], name: string): string | undefined {
  const text = environment[name];
  return text === "" ? undefined : text;
}

/** The configuration that a command is about. */
export function configFileOf(option: string | undefined, environment: Invocation["environment"]): string {
  return option ?? variable(environment, "GATEWAY_CONFIG") ?? "./gateway.yaml";
}
