import type { ChildProcess } from "node:child_process";
import { constants } from "node:os";
import { EXIT } from "./exit-codes.ts";

const CAUGHT = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGCONT"] as const;

/**
 * Catches signals from the first step of a run to its last. While the program runs they are the program's; before and
 * after it they end the run, which then takes away what it has made.
 */
export class RunSignals {
  readonly #cut = new AbortController();
  /** A terminal sends its key presses to the program as well, which would get them twice. */
  readonly #byTerminal = new Set<NodeJS.Signals>(process.stdin.isTTY ? ["SIGINT", "SIGQUIT"] : []);
  #program: ChildProcess | undefined;
  #received: NodeJS.Signals | undefined;

  /** `held` says what came before, which ends the run, and gives signals their usual effect again. */
  constructor(held: () => readonly NodeJS.Signals[]) {
    for (const signal of CAUGHT) process.on(signal, this.#listener);
    for (const signal of held()) this.#listener(signal);
  }

  /** Aborted by the signal that ended the run. */
  get cut(): AbortSignal {
    return this.#cut.signal;
  }

  /** 128 + n when signal n ended the run, undefined when none did. */
  get exitCode(): number | undefined {
    return this.#received === undefined ? undefined : EXIT.signalBase + constants.signals[this.#received];
  }

  /** From now on signals are this program's, or, without one, the run's again. */
  passTo(program: ChildProcess | undefined): void {
    this.#program = program;
  }

  /** Signals have their usual effect again. */
  release(): void {
    for (const signal of CAUGHT) process.off(signal, this.#listener);
  }

  readonly #listener = (signal: NodeJS.Signals): void => {
    if (this.#program !== undefined) {
      if (!this.#byTerminal.has(signal)) this.#program.kill(signal);
    } else if (signal !== "SIGCONT") {
      this.#received ??= signal;
      this.#cut.abort();
    }
  };
}
