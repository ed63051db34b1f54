import type { Socket } from "node:net";
import { requestHeadText, RESPONSE_LIMITS, ResponseReader } from "@headworks/http1";
import { Http2Session, sectionField, sectionLimits } from "@headworks/http2";
import {
  connectEndpoint,
  connectHttp2Endpoint,
  type AttemptHandler,
  type EndpointConnectionOptions,
} from "./endpoint-connection.ts";

/** The parameters of a probe. */
export interface ProbeQuestion {
  readonly kind: "http" | "tcp";
  /** Whether requests use HTTP/2, which the probe then uses, too. */
  readonly isHttp2: boolean;
  readonly path: string;
  /** Value of Host. */
  readonly authority: string;
  /** For the whole probe. */
  readonly timeoutMs: number;
  readonly isExpected: (status: number) => boolean;
}

const AGENT = "sluice-health";
const RESPONSE_SECTION = sectionLimits(RESPONSE_LIMITS);

/** Reports whether the endpoint is healthy; only the first call counts. */
type Finish = (ok: boolean) => void;

/**
 * Probes an endpoint on a connection of its own and in the protocol of its upstream: `tcp` only connects (over TLS if
 * the upstream uses it), `http` sends a GET and checks the response status without reading the body. Returns a
 * function that cancels the probe.
 */
export function probeEndpoint(options: EndpointConnectionOptions, question: ProbeQuestion, ended: Finish): () => void {
  const { timeoutMs } = question;
  let isFinished = false;
  const stop = (): void => {
    isFinished = true;
    clearTimeout(timer);
    drop();
  };
  const finish = (ok: boolean): void => {
    if (isFinished) return;
    stop();
    ended(ok);
  };
  const timer = setTimeout(() => finish(false), timeoutMs);
  const connecting = question.isHttp2 ? connectToAskHttp2 : connectToAskHttp1;
  const drop = connecting({ ...options, connectMs: timeoutMs }, question, finish);
  return stop;
}

function connectToAskHttp1(options: EndpointConnectionOptions, question: ProbeQuestion, finish: Finish): () => void {
  const reader = readerOf(question, finish);
  return connectEndpoint(options, {
    ...attemptHandler(question, finish, (socket) => {
      const { path, authority } = question;
      const fields = ["Host", authority, "User-Agent", AGENT, "Accept", "*/*", "Connection", "close"];
      socket.write(requestHeadText("GET", path, fields));
      socket.resume();
    }),
    received: (bytes) => void reader.read(bytes),
  });
}

function connectToAskHttp2(options: EndpointConnectionOptions, question: ProbeQuestion, finish: Finish): () => void {
  const scheme = options.tls === undefined ? "http" : "https";
  return connectHttp2Endpoint(
    options,
    attemptHandler(question, finish, (socket) => askHttp2(socket, scheme, question, finish)),
  );
}

function attemptHandler({ kind }: ProbeQuestion, finish: Finish, ask: (socket: Socket) => void): AttemptHandler {
  return {
    connected: (socket) => {
      socket.on("error", () => finish(false));
      socket.on("close", () => finish(false));
      if (kind === "tcp") finish(true);
      else ask(socket);
    },
    failed: () => finish(false),
  };
}

function askHttp2(
  socket: Socket,
  scheme: string,
  { path, authority, isExpected }: ProbeQuestion,
  finish: Finish,
): void {
  const failed = (): void => finish(false);
  const session = new Http2Session(socket, { role: "client", section: RESPONSE_SECTION }, { onClose: failed });
  const pseudo = [":method", "GET", ":scheme", scheme, ":authority", authority, ":path", path];
  const stream = session.request([...pseudo, "user-agent", AGENT, "accept", "*/*"], true);
  stream.handler = {
    onSection: (section) => {
      const status = Number(sectionField(section, ":status"));
      if (!(status < 200)) finish(isExpected(status));
    },
    onData: nothing,
    onTrailers: nothing,
    onEnd: nothing,
    onDrain: nothing,
    onClose: failed,
  };
}

function readerOf({ isExpected }: ProbeQuestion, finish: Finish): ResponseReader {
  const reader = new ResponseReader(
    {
      onInformational: nothing,
      onHead: ({ status }) => finish(isExpected(status)),
      onData: nothing,
      onEnd: nothing,
      onError: () => finish(false),
    },
    { lenient: false },
  );
  reader.expect("GET");
  return reader;
}

function nothing(): void {
  // A probe needs only the status.
}
