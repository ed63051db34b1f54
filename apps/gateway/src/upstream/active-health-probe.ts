// Tested by active-health.test.ts
import type { Socket } from "node:net";
import { requestHeadText, ResponseReader } from "@headworks/http1";
import { connectEndpoint, type EndpointWay } from "./endpoint-connection.ts";

/** What a probe asks an endpoint. */
export interface ProbeQuestion {
  readonly kind: "http" | "tcp";
  readonly path: string;
  /** Host field. */
  readonly authority: string;
  /** For the whole probe. */
  readonly timeoutMs: number;
  readonly isExpected: (status: number) => boolean;
}

/**
 * Asks an endpoint how it is, on a connection of its own: `tcp` connects (with TLS where the upstream has it), `http`
 * sends a GET and looks at the status of the answer, whose body nobody waits for. Gives a way to cancel.
 */
export function probeEndpoint(way: EndpointWay, question: ProbeQuestion, ended: (ok: boolean) => void): () => void {
  const { timeoutMs } = question;
  let isOver = false;
  const stop = (): void => {
    isOver = true;
    clearTimeout(timer);
    drop();
  };
  const finish = (ok: boolean): void => {
    if (isOver) return;
    stop();
    ended(ok);
  };
  const timer = setTimeout(() => finish(false), timeoutMs);
  const reader = readerOf(question, finish);
  const drop = connectEndpoint(
    { ...way, connectMs: timeoutMs },
    {
      connected: (socket) => {
        socket.on("error", () => finish(false));
        socket.on("close", () => finish(false));
        if (question.kind === "tcp") finish(true);
        else ask(socket, question);
      },
      failed: () => finish(false),
      received: (bytes) => void reader.read(bytes),
    },
  );
  return stop;
}

function ask(socket: Socket, { path, authority }: ProbeQuestion): void {
  const fields = ["Host", authority, "User-Agent", "sluice-health", "Accept", "*/*", "Connection", "close"];
  socket.write(requestHeadText("GET", path, fields));
  socket.resume();
}

function readerOf({ isExpected }: ProbeQuestion, finish: (ok: boolean) => void): ResponseReader {
  const reader = new ResponseReader(
    {
      onInformational: () => undefined,
      onHead: ({ status }) => finish(isExpected(status)),
      onData: () => undefined,
      onEnd: () => undefined,
      onError: () => finish(false),
    },
    { lenient: false },
  );
  reader.expect("GET");
  return reader;
}
