import { setPriority } from "node:os";
import { parentPort } from "node:worker_threads";
import type { FromMirror, MirrorResult, ToMirror } from "./mirror-messages.ts";
import { MirrorWriting } from "./mirror-writing.ts";

/** Results are told together while more is waiting: a message for each would cost the proxy much. */
const MAX_RESULTS = 64;

/** Where all cores are busy, traffic goes first. Linux alone gives threads priorities of their own. */
const NICENESS = 10;

const port = parentPort;
if (port !== null) {
  if (process.platform === "linux") setPriority(0, NICENESS);
  const writing = new MirrorWriting();
  const results: MirrorResult[] = [];
  let waiting = 0;
  const post = (message: FromMirror): void => port.postMessage(message);
  const tell = (): void => {
    if (results.length > 0) post({ kind: "done", results: results.splice(0) });
  };
  const note = (result: MirrorResult | undefined): void => {
    if (result !== undefined) results.push(result);
    if (waiting === 1 || results.length >= MAX_RESULTS) tell();
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
        tell();
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
