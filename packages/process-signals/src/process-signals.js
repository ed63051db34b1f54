// @ts-check
import { constants } from "node:os";

// JavaScript, as the launchers that import it before the compile cache is on (decision 022).

/** @typedef {NodeJS.Signals} Signal */

/**
 * Signals that ask a service to end in good order: Ctrl+C and Ctrl+\, a service manager, a power supply that fails, and a
 * limit of processor time, behind which only SIGKILL is left.
 * @type {readonly Signal[]}
 */
export const STOP_SIGNALS = ["SIGINT", "SIGTERM", "SIGQUIT", "SIGPWR", "SIGXCPU"];

/**
 * Signals that would end the process, and mean nothing to it. SIGUSR1 would open Node's debugger. SIGPIPE and SIGXFSZ are
 * ignored by Node. SIGPROF is V8's, for its profiler; those that tell of a fault of the program keep their effect.
 * @type {readonly Signal[]}
 */
export const IGNORED_SIGNALS = ["SIGUSR1", "SIGUSR2", "SIGALRM", "SIGVTALRM", "SIGIO", "SIGSTKFLT"];

/**
 * What a command has to say the meaning of.
 * @type {readonly Signal[]}
 */
const HELD_SIGNALS = [...STOP_SIGNALS, "SIGHUP"];

/** One key press may arrive several times: from the terminal, and again from npm. */
const SAME_KEY_PRESS_MS = 400;

/** Ignores, from now on, what means nothing. */
export function ignoreSignals() {
  for (const signal of IGNORED_SIGNALS) process.on(signal, ignore);
}

/** Ignores every signal that can be ignored, as a process does whose parent gets the same ones and decides. */
export function leaveSignalsToParent() {
  ignoreSignals();
  for (const signal of HELD_SIGNALS) process.on(signal, ignore);
}

/**
 * Ignores what means nothing, and holds SIGHUP and the requests to stop until somebody knows what they mean. Returns a
 * function that ends the hold and says what came meanwhile, in order; call it behind listeners of one's own.
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
 * Gives held signals their usual effect, for a command that loses nothing when it is ended.
 * @param {() => readonly Signal[]} handOver of {@link holdSignals}
 * @returns {Promise<void>}
 */
export async function releaseSignals(handOver) {
  // A signal is told in a turn of the event loop, of which there may have been none.
  await new Promise((resolve) => void setImmediate(resolve, undefined));
  const [first] = handOver();
  if (first !== undefined) process.kill(process.pid, first);
}

/**
 * Calls `stop` for every request to stop, those that were held first; a key press that arrives twice counts once. SIGHUP
 * calls `hangup`; without one it is a request to stop. Returns a function that ends all that.
 * @param {() => readonly Signal[]} handOver of {@link holdSignals}
 * @param {{ stop: (signal: Signal) => void, hangup?: () => void }} told
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
 * What a shell says of a process that a signal ended.
 * @param {Signal} signal
 * @returns {number}
 */
export function exitCodeOf(signal) {
  return 128 + constants.signals[signal];
}

function ignore() {
  // Having a listener is the point.
}
