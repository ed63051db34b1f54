import type { Socket } from "node:net";
import { type RawFields, requestHeadText, type ResponseHead, ResponseReader } from "@headworks/http1";
import { SharedBytes } from "@headworks/sockets";
import type { EgressDialer, EgressPurpose } from "./egress-dialer.ts";
import { asEgressError, EgressError, timedOut } from "./egress-failure.ts";
import type { EgressUrl } from "./egress-url.ts";

/** One outbound POST. */
interface PostRequest {
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

/** Below the usual idle timeout of servers, so that connections are rarely closed under a request. */
const IDLE_MS = 4000;

/** Idle connections to one destination, opened under one generation's rules and closed with it. */
export class KeptConnections {
  readonly #capacity: number;
  readonly #idle: { readonly socket: Socket; readonly forget: () => void }[] = [];
  #isClosed = false;

  constructor(capacity = 16) {
    this.#capacity = capacity;
  }

  /** The most recently used connection, if any. */
  take(): Socket | undefined {
    const kept = this.#idle.pop();
    kept?.forget();
    return kept?.socket;
  }

  /** Keeps an idle connection, or closes it if it cannot be kept. */
  put(socket: Socket): void {
    if (this.#isClosed || socket.destroyed || !socket.writable || this.#idle.length >= this.#capacity) {
      socket.destroy();
      return;
    }
    const drop = (): void => {
      const at = this.#idle.findIndex((kept) => kept.socket === socket);
      if (at !== -1) this.#idle.splice(at, 1);
      socket.destroy();
    };
    const timer = setTimeout(drop, IDLE_MS).unref();
    // Unexpected bytes, and every kind of end, make a connection unusable.
    for (const event of ["data", "end", "close", "error"]) socket.on(event, drop);
    const forget = (): void => {
      clearTimeout(timer);
      for (const event of ["data", "end", "close", "error"]) socket.off(event, drop);
    };
    this.#idle.push({ socket, forget });
    socket.resume();
  }

  /** Closes idle connections; active ones are closed when they are put back. */
  close(): void {
    this.#isClosed = true;
    for (let socket = this.take(); socket !== undefined; socket = this.take()) socket.destroy();
  }
}

/** Fields that frame the request or belong to the connection; a configuration must not set them. */
const OWN_FIELDS = new Set([
  "connection",
  "content-length",
  "content-type",
  "expect",
  "host",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "user-agent",
]);

/** The problem of a configured field name, as a sentence; undefined for none. */
export function fieldNameIssue(name: string): string | undefined {
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name)) return "The name is not a legal header name.";
  if (OWN_FIELDS.has(name.toLowerCase())) return "This header is set by the gateway itself.";
  return undefined;
}

/** The problem of a configured field value (RFC 9110 section 5.5), as a sentence without the value. */
export function fieldValueIssue(value: string): string | undefined {
  if (/[^\t\x20-\x7e\x80-\xff]/.test(value)) {
    return "The value contains a control character or one that headers cannot carry.";
  }
  if (/^[\t ]|[\t ]$/.test(value)) return "The value begins or ends with white space.";
  return undefined;
}
