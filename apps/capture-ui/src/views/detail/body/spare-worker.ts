let spare: Worker | null = null;

function startWorker(): Worker {
  return new Worker(new URL("./body-worker.ts", import.meta.url), { type: "module" });
}

/** Starts a worker for the next body ahead of time, since startup takes as long as showing a small body. */
export function prepareWorker(): void {
  if (spare !== null) return;
  const worker = startWorker();
  spare = worker;
  // A worker that failed to load must not be used: its body would never open.
  worker.onerror = () => {
    if (spare === worker) spare = null;
  };
}

/** Hands over the prepared worker, or a new one; the caller terminates it. */
export function takeWorker(): Worker {
  const worker = spare ?? startWorker();
  spare = null;
  return worker;
}
