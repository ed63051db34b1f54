import { SharedBytes } from "@headworks/sockets";
import type { Socket } from "node:net";
import { requestHeadText, ResponseReader, type RawFields, type ResponseHead } from "@headworks/http1";
import type { EgressDialer, EgressPurpose } from "./egress-dialer.ts";
import { asEgressError, EgressError, timedOut } from "./egress-failure.ts";
import type { EgressUrl } from "./egress-url.ts";
import type { KeptConnections } from "./kept-connections.ts";

/** One outbound POST. */
export interface PostRequest {
  readonly url: EgressUrl;
  readonly purpose: EgressPurpose;
  /** Besides Host, Content-Length and Connection, which are added. */
  readonly fields: Readonly<RawFields>;
  readonly body: Buffer;
  /** Limit of the response body that is read; with 0 the body is not awaited. */
  readonly maxBodyBytes: number;
  /** Whether a response without its whole body is a failure. Otherwise the head is enough. */
  readonly needsBody: boolean;
  /** Whether the response may have flaws that browsers tolerate. */
  readonly isLenient: boolean;
  /** Pool of connections to reuse; without it each request opens its own. */
  readonly kept?: KeptConnections;
}

/** The final response, or the failure. */
export type PostResult =
  | { readonly kind: "response"; readonly status: number; readonly fields: RawFields; readonly body: Buffer }
  | { readonly kind: "failure"; readonly error: EgressError };

/** Limit of a response head. */
const MAX_HEAD_BYTES = 8192;

/**
 * Sends one request and reads the response head, and the body if requested. Redirects are not followed. Never
 * rejects; everything, from the name lookup to the last byte, ends when `signal` aborts.
 */
export async function post(dialer: EgressDialer, request: PostRequest, signal: AbortSignal): Promise<PostResult> {
  for (let used = request.kept?.take(); used !== undefined; used = request.kept?.take()) {
    const exchange = new Exchange(used, request);
    const result = await exchange.run(signal);
    // The peer closed the idle connection: the request was not processed.
    const isStale = result.kind === "failure" && result.error.code === "connection_lost" && !exchange.hasResponseBytes;
    if (!isStale || signal.aborted) return result;
  }
  let socket: Socket;
  try {
    socket = await dialer.dial(request.url, request.purpose, signal);
  } catch (error) {
    return { kind: "failure", error: asEgressError(error, "connect_failed") };
  }
  return await new Exchange(socket, request).run(signal);
}

class Exchange {
  readonly #socket: Socket;
  readonly #request: PostRequest;
  readonly #reader: ResponseReader;
  readonly #settled = Promise.withResolvers<PostResult>();
  readonly #pieces: Buffer[] = [];
  #sizeBytes = 0;
  #head: ResponseHead | undefined;
  #hasResponseBytes = false;
  #canBeKept = false;

  constructor(socket: Socket, request: PostRequest) {
    this.#socket = socket;
    this.#request = request;
    this.#reader = new ResponseReader(
      {
        onInformational: () => undefined,
        onHead: (head) => this.#onHead(head),
        onData: (piece) => this.#onData(piece),
        onEnd: () => this.#response(),
        onError: (error) => this.#fail(new EgressError("bad_answer", error.message)),
      },
      { lenient: request.isLenient, limits: { headBytes: MAX_HEAD_BYTES } },
    );
  }

  get hasResponseBytes(): boolean {
    return this.#hasResponseBytes;
  }

  async run(signal: AbortSignal): Promise<PostResult> {
    const socket = this.#socket;
    const onAbort = (): void => this.#fail(timedOut());
    const onError = (error: Error): void => this.#fail(new EgressError("connection_lost", error.message));
    const onClose = (): void => this.#fail(new EgressError("connection_lost", "The connection was closed"));
    const onData = (bytes: Buffer): void => this.#read(bytes);
    const onEnd = (): void => {
      this.#reader.end();
      this.#fail(new EgressError("connection_lost", "The connection ended before the response"));
    };
    signal.addEventListener("abort", onAbort, { once: true });
    socket.on("error", onError).on("close", onClose).on("data", onData).on("end", onEnd);
    try {
      if (signal.aborted) onAbort();
      else this.#send();
      return await this.#settled.promise;
    } catch (error) {
      return { kind: "failure", error: asEgressError(error, "bad_answer") };
    } finally {
      signal.removeEventListener("abort", onAbort);
      this.#reader.pause();
      socket.off("error", onError).off("close", onClose).off("data", onData).off("end", onEnd);
      if (this.#canBeKept && this.#request.kept !== undefined) {
        this.#request.kept.put(socket);
      } else {
        // Late errors are irrelevant but must not end the process.
        socket.on("error", () => undefined);
        socket.destroy();
      }
    }
  }

  #send(): void {
    const { url, fields, body, kept } = this.#request;
    const framing = ["Content-Length", String(body.length), "Connection", kept === undefined ? "close" : "keep-alive"];
    const head = requestHeadText("POST", url.target, ["Host", url.authority, ...fields, ...framing]);
    this.#reader.expect("POST");
    this.#socket.write(Buffer.concat([Buffer.from(head, "latin1"), body]));
  }

  #read(bytes: Buffer): void {
    this.#hasResponseBytes = true;
    const taken = this.#reader.read(bytes);
    // Bytes after a response are unexpected and must not be read as the next response.
    if (taken < bytes.length) this.#canBeKept = false;
  }

  #onHead(head: ResponseHead): void {
    this.#head = head;
    if (this.#request.maxBodyBytes > 0) return;
    this.#reader.pause();
    this.#response();
  }

  #onData(piece: SharedBytes): void {
    this.#sizeBytes += piece.length;
    if (this.#sizeBytes > this.#request.maxBodyBytes) {
      this.#fail(new EgressError("answer_too_large", "The response body is too large"));
    } else if (this.#request.needsBody) {
      this.#pieces.push(SharedBytes.copyAlone(piece));
    }
  }

  #response(): void {
    const head = this.#head;
    if (head === undefined) return;
    this.#canBeKept = this.#reader.state === "ended" && head.keepAlive && this.#reader.oddities.length === 0;
    const { status, fields } = head;
    this.#settled.resolve({ kind: "response", status, fields, body: Buffer.concat(this.#pieces) });
  }

  /** After a response, only marks the connection as unusable. */
  #fail(error: EgressError): void {
    if (this.#head !== undefined && !this.#request.needsBody) this.#response();
    else this.#settled.resolve({ kind: "failure", error });
    this.#canBeKept = false;
  }
}
