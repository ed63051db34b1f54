import { useEffect, useState } from "react";
import { BodyClient } from "./body-client.ts";
import type { BodyProgress } from "./body-document.ts";
import { prepareWorker, takeWorker } from "./spare-worker.ts";

/** An open body: the way to ask for its rows, and how far it has come. */
export interface OpenBody {
  readonly client: BodyClient | null;
  readonly progress: BodyProgress | null;
  /** Why nothing more will come. */
  readonly failure: Error | null;
  /** Opens it anew, after a failure or a pattern without end. */
  readonly reopen: () => void;
}

/** Opens a body in a worker while the component is mounted. */
export function useBody(url: string, contentType: string | null): OpenBody {
  const [open, setOpen] = useState<Omit<OpenBody, "reopen">>({ client: null, progress: null, failure: null });
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    const client = new BodyClient(
      takeWorker(),
      { url: new URL(url, location.origin).href, contentType },
      (progress) => setOpen({ client, progress, failure: null }),
      (failure) => setOpen({ client: null, progress: null, failure }),
    );
    return () => client.close();
  }, [url, contentType, attempt]);
  const isDone = open.progress?.done === true;
  useEffect(() => {
    if (isDone) prepareWorker();
  }, [isDone]);
  return { ...open, reopen: () => setAttempt((count) => count + 1) };
}
