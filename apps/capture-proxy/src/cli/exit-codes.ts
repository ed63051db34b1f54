/**
 * What the process ends with. `weir run` ends with the program's own code instead, or with 126, 127 or 128 + signal; a
 * signal that cuts a run or a tail short counts the same way.
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
