// Tested by ../../../../../../e2e/ui-detail.test.ts

let spare: Worker | null = null;

function startWorker(): Worker {
  return new Worker(new URL("./body.worker.ts", import.meta.url), { type: "module" });
}

/** Starts a worker for the next body ahead, since starting one takes as long as showing a small body. */
export function prepareWorker(): void {
  spare ??= startWorker();
}

/** A worker that no one else uses; it is the caller's to end. */
export function takeWorker(): Worker {
  const worker = spare ?? startWorker();
  spare = null;
  return worker;
}
