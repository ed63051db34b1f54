// Tested by ../../test/webhooks/delivery-rules.test.ts
import type { Socket } from "node:net";
import { requestHeadText, ResponseReader, type RawFields } from "@headworks/http1";
import type { EgressDialer, EgressPurpose } from "./egress-dialer.ts";
import { asEgressError, EgressError, timedOut } from "./egress-failure.ts";
import type { EgressUrl } from "./egress-url.ts";

/** One POST of our own. */
export interface PostRequest {
  readonly url: EgressUrl;
  readonly purpose: EgressPurpose;
  /** Besides Host, Content-Length and Connection, which are added. */
  readonly fields: Readonly<RawFields>;
  readonly body: Buffer;
  /** 0: the answer's body is not read at all. A longer body is a failure. */
  readonly mostBodyBytes: number;
  /** Whether an answer may have the flaws that browsers tolerate. */
  readonly isLenient: boolean;
}

/** The final answer, or why there is none. */
export type PostResult =
  | { readonly kind: "answer"; readonly status: number; readonly fields: RawFields; readonly body: Buffer }
  | { readonly kind: "failure"; readonly error: EgressError };

/** What the head of an answer may have; anything longer is no answer to a notification. */
const MOST_HEAD_BYTES = 8192;

/**
 * Sends one request over a connection of its own and reads the head of the answer, and its body if asked to; then the
 * connection is closed. Redirects are answers like any other. Never rejects; everything, from the lookup of the name
 * to the last byte, ends when `signal` aborts.
 */
export async function post(dialer: EgressDialer, request: PostRequest, signal: AbortSignal): Promise<PostResult> {
  let socket: Socket;
  try {
    socket = await dialer.dial(request.url, request.purpose, signal);
  } catch (error) {
    return { kind: "failure", error: asEgressError(error, "connect_failed") };
  }
  return await exchange(socket, request, signal);
}

async function exchange(socket: Socket, request: PostRequest, signal: AbortSignal): Promise<PostResult> {
  const { promise, resolve } = Promise.withResolvers<PostResult>();
  const fail = (error: EgressError): void => resolve({ kind: "failure", error });
  const reader = answerReader(request.mostBodyBytes, request.isLenient, resolve);
  const onAbort = (): void => fail(timedOut());
  signal.addEventListener("abort", onAbort, { once: true });
  socket.on("error", (error) => fail(new EgressError("connection_lost", error.message)));
  socket.once("close", () => fail(new EgressError("connection_lost", "The connection was closed without an answer")));
  socket.on("data", (piece: Buffer) => void reader.read(piece));
  socket.once("end", () => {
    reader.end();
    fail(new EgressError("connection_lost", "The connection ended before the answer"));
  });
  try {
    if (signal.aborted) return { kind: "failure", error: timedOut() };
    reader.expect("POST");
    socket.write(Buffer.concat([Buffer.from(headText(request), "latin1"), request.body]));
    return await promise;
  } catch (error) {
    return { kind: "failure", error: asEgressError(error, "bad_answer") };
  } finally {
    signal.removeEventListener("abort", onAbort);
    reader.pause();
    socket.destroy();
  }
}

function headText(request: PostRequest): string {
  return requestHeadText("POST", request.url.target, [
    "Host",
    request.url.authority,
    ...request.fields,
    "Content-Length",
    String(request.body.length),
    "Connection",
    "close",
  ]);
}

function answerReader(mostBodyBytes: number, isLenient: boolean, settle: (result: PostResult) => void): ResponseReader {
  const pieces: Buffer[] = [];
  let sizeBytes = 0;
  let status = 0;
  let fields: RawFields = [];
  const answer = (): void => settle({ kind: "answer", status, fields, body: Buffer.concat(pieces) });
  const fail = (error: EgressError): void => settle({ kind: "failure", error });
  const reader: ResponseReader = new ResponseReader(
    {
      onInformational: () => undefined,
      onHead: (head) => {
        ({ status, fields } = head);
        if (mostBodyBytes > 0) return;
        reader.pause();
        answer();
      },
      onData: (piece) => {
        sizeBytes += piece.length;
        if (sizeBytes > mostBodyBytes) fail(new EgressError("answer_too_large", "The answer's body is too large"));
        else pieces.push(Buffer.from(piece));
      },
      onEnd: answer,
      onError: (error) => fail(new EgressError("bad_answer", error.message)),
    },
    { lenient: isLenient, limits: { headBytes: MOST_HEAD_BYTES } },
  );
  return reader;
}
