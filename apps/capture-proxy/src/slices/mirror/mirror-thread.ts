import { setPriority } from "node:os";
import { parentPort } from "node:worker_threads";
import type { FromMirror, MirrorResult, ToMirror } from "./mirror-messages.ts";
import { MirrorWriting } from "./mirror-writing.ts";

/** Results are batched while more jobs are queued, since each message costs the proxy time. */
const MAX_RESULTS = 64;

/** Lowers the thread's priority below the proxy's. Only Linux has priorities per thread. */
const NICENESS = 10;
const port = parentPort;
if (port !== null) {
  if (process.platform === "linux") setPriority(0, NICENESS);
  const writing = new MirrorWriting();
  const results: MirrorResult[] = [];
  let waiting = 0;
  const post = (message: FromMirror): void => port.postMessage(message);
  const postResults = (): void => {
    if (results.length > 0) post({ kind: "done", results: results.splice(0) });
  };
  const note = (result: MirrorResult | undefined): void => {
    if (result !== undefined) results.push(result);
    if (waiting === 1 || results.length >= MAX_RESULTS) postResults();
  };
  const serve = async (message: ToMirror): Promise<void> => {
    switch (message.kind) {
      case "whole":
        return note(await writing.whole(message.job, message));
      case "begin":
        return writing.begin(message.job);
      case "piece":
        writing.piece(message.side, message.bytes);
        return post({ kind: "taken" });
      case "finish":
        return note(await writing.finish());
      case "abandon":
        return writing.abandon();
      case "close":
        writing.close();
        postResults();
        return port.close();
    }
  };
  let turn = Promise.resolve();
  port.on("message", (message: ToMirror) => {
    waiting += 1;
    turn = turn.then(async () => {
      await serve(message);
      waiting -= 1;
    });
  });
}
