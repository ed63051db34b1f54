let spare: Worker | null = null;

function startWorker(): Worker {
  return new Worker(new URL("./body-worker.ts", import.meta.url), { type: "module" });
}

/** Starts a worker for the next body ahead, since starting one takes as long as showing a small body. */
export function prepareWorker(): void {
  if (spare !== null) return;
  const worker = startWorker();
  spare = worker;
  // One that could not be loaded must not be given to a body, which would wait for it without end.
  worker.onerror = () => {
    if (spare === worker) spare = null;
  };
}

/** A worker that no one else uses; it is the caller's to end. */
export function takeWorker(): Worker {
  const worker = spare ?? startWorker();
  spare = null;
  return worker;
}
