// @ts-check
import { constants } from "node:os";

// JavaScript, like the launchers, which import it before the compile cache is enabled (decision 022).

/** @typedef {NodeJS.Signals} Signal */

/**
 * Signals that stop a service gracefully: from Ctrl+C and Ctrl+\, a service manager, a failing power supply, and a
 * limit of CPU time, which only SIGKILL follows.
 * @type {readonly Signal[]}
 */
export const STOP_SIGNALS = ["SIGINT", "SIGTERM", "SIGQUIT", "SIGPWR", "SIGXCPU"];

/**
 * Signals that would end the process without a meaning for it. SIGUSR1 would open Node's debugger. Node ignores SIGPIPE
 * and SIGXFSZ. V8's profiler uses SIGPROF. Signals for faults of the program keep their effect.
 * @type {readonly Signal[]}
 */
export const IGNORED_SIGNALS = ["SIGUSR1", "SIGUSR2", "SIGALRM", "SIGVTALRM", "SIGIO", "SIGSTKFLT"];

/**
 * Signals deferred until the command has handlers for them.
 * @type {readonly Signal[]}
 */
const HELD_SIGNALS = [...STOP_SIGNALS, "SIGHUP"];

/** One key press may arrive several times: from the terminal, and again from npm. */
const SAME_KEY_PRESS_MS = 400;

/** From now on, ignores the signals without a meaning. */
export function ignoreSignals() {
  for (const signal of IGNORED_SIGNALS) process.on(signal, ignore);
}

/** Ignores all signals that can be ignored, for a process whose parent receives the same ones and decides. */
export function leaveSignalsToParent() {
  ignoreSignals();
  for (const signal of HELD_SIGNALS) process.on(signal, ignore);
}

/**
 * Ignores the signals without a meaning, and defers SIGHUP and stop signals. Returns a function that ends this and returns
 * the deferred signals in order; call it after adding your own listeners.
 * @returns {() => readonly Signal[]}
 */
export function holdSignals() {
  ignoreSignals();
  /** @type {Signal[]} */
  const held = [];
  /** @param {Signal} signal */
  const hold = (signal) => void held.push(signal);
  for (const signal of HELD_SIGNALS) process.on(signal, hold);
  return () => {
    for (const signal of HELD_SIGNALS) process.off(signal, hold);
    return held.splice(0);
  };
}

/**
 * Gives deferred signals their default effect, for a command that can be ended at any time.
 * @param {() => readonly Signal[]} handOver of {@link holdSignals}
 * @returns {Promise<void>}
 */
export async function releaseSignals(handOver) {
  // Signals are delivered in a turn of the event loop, and there may have been none yet.
  await new Promise((resolve) => void setImmediate(resolve, undefined));
  const [first] = handOver();
  if (first !== undefined) process.kill(process.pid, first);
}

/**
 * Calls `stop` for each stop signal, deferred ones first; a key press that arrives twice counts once. SIGHUP calls
 * `hangup`; without one it is a stop signal. Returns a function that removes the listeners.
 * @param {() => readonly Signal[]} handOver of {@link holdSignals}
 * @param {{ stop: (signal: Signal) => void, hangup?: () => void }} handlers
 * @returns {() => void}
 */
export function followSignals(handOver, { stop, hangup }) {
  let lastMs = Number.NEGATIVE_INFINITY;
  /** @param {Signal} signal */
  const listener = (signal) => {
    if (signal === "SIGHUP" && hangup !== undefined) {
      hangup();
      return;
    }
    const nowMs = performance.now();
    if (nowMs - lastMs < SAME_KEY_PRESS_MS) return;
    lastMs = nowMs;
    stop(signal);
  };
  for (const signal of HELD_SIGNALS) process.on(signal, listener);
  for (const signal of handOver()) listener(signal);
  return () => {
    for (const signal of HELD_SIGNALS) process.off(signal, listener);
  };
}

/**
 * The exit code that a shell reports for a process ended by a signal.
 * @param {Signal} signal
 * @returns {number}
 */
export function exitCodeOf(signal) {
  return 128 + constants.signals[signal];
}

function ignore() {
  // A listener replaces the default effect.
}
