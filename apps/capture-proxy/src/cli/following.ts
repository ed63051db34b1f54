import { readJson } from "@headworks/json";
import { constants } from "node:os";
import type { ServerMessage } from "@headworks/capture-contract";
import { CommandFailure, EXIT, type Invocation } from "./invocation.ts";

/**
 * Runs an endless `follow` until the process is interrupted or its output is closed: both abort the signal that
 * `follow` receives. Resolves to the exit code, after an interruption 128 and the signal's
 * number, as of anything that a signal ended; rejects as `follow` does.
 */
export async function followUntilInterrupted(
  { outputGone }: Pick<Invocation, "outputGone">,
  follow: (signal: AbortSignal) => Promise<void>,
): Promise<number> {
  const stop = new AbortController();
  let interruptedBy: NodeJS.Signals | undefined;
  const onInterrupt = (signal: NodeJS.Signals): void => {
    interruptedBy = signal;
    stop.abort();
  };
  const onGone = (): void => stop.abort();
  process.once("SIGINT", onInterrupt).once("SIGTERM", onInterrupt);
  outputGone.addEventListener("abort", onGone, { once: true });
  try {
    await follow(stop.signal);
  } finally {
    process.off("SIGINT", onInterrupt).off("SIGTERM", onInterrupt);
    outputGone.removeEventListener("abort", onGone);
  }
  return interruptedBy === undefined ? EXIT.ok : EXIT.signalBase + constants.signals[interruptedBy];
}

/** How many of the newest a command shows first. */
export const MAX_LINES = 1000;

/** Reads the value of `--lines`. Throws {@link CommandFailure} with the limits. */
export function lineCount(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 0 || value > MAX_LINES) {
    throw new CommandFailure(EXIT.usage, `--lines takes a number from 0 to ${MAX_LINES}`);
  }
  return value;
}

/** The message when the server at the address is not Weir. */
export const NOT_THE_FEED = "The server at /ws does not speak the protocol of Weir's live feed";

/** The messages of one text of the live feed, which sends them alone or several in an array. Throws for anything else. */
export function feedMessages(text: string): readonly ServerMessage[] {
  const parsed = readJson(text) as unknown as ServerMessage | readonly ServerMessage[];
  return Array.isArray(parsed) ? (parsed as readonly ServerMessage[]) : [parsed as ServerMessage];
}
