import type { Command } from "commander";
import type { Logger } from "pino";

/** The environment of a command. */
export interface Invocation {
  /** The version of Sluice. */
  readonly version: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly stdin: AsyncIterable<Uint8Array>;
  readonly stdout: Output;
  readonly stderr: Output;
  /** Creates the process logger: JSON lines on standard output, at the level of `GATEWAY_LOG`. */
  readonly createLogger: (level: string) => Promise<Logger>;
  /** Releases signals received before the command installed handlers; later ones have their default effect. */
  readonly heldSignals: () => readonly NodeJS.Signals[];
  /** Exits immediately. */
  readonly exitNow: (code: number) => void;
}

export interface Output {
  write(text: string): unknown;
  readonly isTTY?: boolean;
}

/** Exit codes. */
export const EXIT = {
  ok: 0,
  /** The command failed, or a document has errors. */
  failure: 1,
  /** A document has warnings, or the command line is invalid. */
  warnings: 2,
} as const;

/** Formats the examples of a command's help. */
export function examples(...lines: readonly string[]): string {
  return `\nExamples:\n${lines.map((line) => `  ${line}\n`).join("")}`;
}

/** An environment variable; empty counts as unset. */
export function variable(environment: Invocation["environment"], name: string): string | undefined {
  const text = environment[name];
  return text === "" ? undefined : text;
}

/** The path of the configuration. */
export function configFileOf(option: string | undefined, environment: Invocation["environment"]): string {
  return option ?? variable(environment, "GATEWAY_CONFIG") ?? "./gateway.yaml";
}

/** Adds options for the admin API's address and credentials. */
export function adminOptions(command: Command): Command {
  return command
    .option("--admin <url>", "admin API (environment: GATEWAY_ADMIN; http://127.0.0.1:2019)")
    .option("--cert <file>", "certificate of the operator (GATEWAY_ADMIN_CERT)")
    .option("--key <file>", "its key (GATEWAY_ADMIN_KEY)")
    .option("--ca <file>", "CA of the gateway's certificate (GATEWAY_ADMIN_CA)");
}
