import type { Worker } from "node:worker_threads";
import type { Logger } from "pino";
import type { LogOutput } from "#logging/service-logs.ts";
import type { Terminal } from "./terminal.ts";

/**
 * What the process ends with. `weir run` ends with the program's own code instead, or with 126, 127 or 128 + signal; a
 * signal that ends a run or a tail early counts the same way.
 */
export const EXIT = {
  ok: 0,
  /** Something was tried and did not work; the sentence is on standard error. */
  failure: 1,
  /** The command line itself is wrong; nothing was tried. */
  usage: 2,
  addressInUse: 3,
  /** The service cannot start: a setting of the file or the environment, the data directory, a certificate. */
  cannotStart: 4,
  /** The condition of `--fail-on` is met: responses differ, or requests failed. */
  differs: 5,
  notExecutable: 126,
  commandNotFound: 127,
  signalBase: 128,
} as const;

/** Ends a command with one sentence on standard error and an exit code. */
export class CommandFailure extends Error {
  readonly exitCode: number;

  constructor(exitCode: number, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "CommandFailure";
    this.exitCode = exitCode;
  }
}

/** For the help of commands with `--fail-on`. */
export const FAIL_ON_EXITS = `
Exit codes: 0 done, 1 failed, 2 wrong usage, 5 condition of --fail-on met.
`;

/** The log goes to a standard stream and its file, or to standard error alone. */
export type LogTarget = "stdout" | "stderr" | "stderr-only";

/** How the log is written. */
interface LogOptions {
  /** The log's file. */
  readonly path: string;
  readonly target: LogTarget;
  readonly level: string;
  /** JSON lines instead of text. */
  readonly isJson: boolean;
  readonly hasColours: boolean;
}

/** The CA of a data directory, opened without a running service. */
export interface OfflineAuthority {
  /** The PEM file of the certificate. */
  readonly path: string;
  readonly certificatePem: string;
  readonly certificateDer: Uint8Array;
  readonly fingerprint: string;
  readonly subject: string;
  readonly notBefore: Date;
  readonly notAfter: Date;
  /** Replaces it by a new one; the old files stay beside it. */
  renew(): OfflineAuthority;
}

/** A connection on which a service sends messages. */
export interface MessageSocket {
  onOpen(listener: () => void): void;
  onMessage(listener: (text: string) => void): void;
  /** Called once, when the connection ends or cannot be opened. */
  onClose(listener: (reason: string) => void): void;
  send(text: string): void;
  close(): void;
}

/** Content of a database: rules and other state, captured traffic, or a file without our version. */
export type DatabaseContent = "state" | "traffic" | "other";

/** Internals of the service that commands need; the process's entry passes them, each loaded on first use. */
export interface Parts {
  /** A logger, and where its lines go; closing that brings the last ones out. */
  readonly createLogger: (options: LogOptions) => Promise<{ readonly log: Logger; readonly output: LogOutput }>;
  /**
   * SQLite's own quick check of a file; resolves to its messages, none if the file is intact. Rejects with SQLite's error,
   * and with a `DatabaseTooNewError` for a file of ours that a newer version wrote.
   */
  readonly checkDatabase: (path: string, content: DatabaseContent) => Promise<readonly string[]>;
  /** Opens the CA in a directory, making one where there is none yet. Throws an error with a sentence. */
  readonly openAuthority: (directory: string) => Promise<OfflineAuthority>;
  readonly openSocket: (url: string) => Promise<MessageSocket>;
  /** The thread on which a service's store writes; started early, and idle until it is needed. */
  readonly startWriter: () => Promise<Worker>;
}

/** One run of the command line. */
export interface Invocation {
  readonly version: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: Terminal;
  readonly stderr: Terminal;
  readonly parts: Parts;
  /** Aborted when standard output is closed. */
  readonly outputGone: AbortSignal;
  /** Signals received before the command installed handlers; later ones have their default effect. */
  readonly heldSignals: () => readonly NodeJS.Signals[];
  /** Ends the process at once; for a second interrupt. */
  readonly exitNow: (code: number) => void;
}

/** Where a command leaves its exit code. */
export interface Outcome {
  exitCode: number;
}
