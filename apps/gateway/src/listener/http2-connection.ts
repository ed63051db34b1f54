import { randomBytes } from "node:crypto";
import type { Socket } from "node:net";
import type { ErrorCode } from "@headworks/gateway-contract";
import { withoutPseudoFields } from "@headworks/http-fields";
import {
  type Http2RequestProblem,
  lengthFraming,
  type RawFields,
  readHttp2Request,
  REQUEST_LIMITS,
} from "@headworks/http1";
import {
  ENHANCE_YOUR_CALM,
  Http2Session,
  type Http2Stream,
  PROTOCOL_ERROR,
  ResetAllowance,
  sectionField,
} from "@headworks/http2";
import { NOT_IN_SET, type Timed, turnMs } from "@headworks/sockets";
import type { ListenerFacts, Peer } from "#request/client-stream.ts";
import {
  type ConnectionServices,
  HALF_CLOSED_MS,
  type OpenConnection,
  type ReceivedHead,
} from "./connection-services.ts";
import { Http2ClientStream, type StreamOwner } from "./http2-client-stream.ts";

const CODES: Readonly<Record<Http2RequestProblem["problem"], ErrorCode>> = {
  malformed: "bad_request",
  "too-many-fields": "request_headers_too_large",
  tunnel: "upgrade_not_supported",
};

const WEBSOCKET_KEY_BYTES = 16;

const TOO_MANY_RESETS = new Error("Too many streams ended before their responses");
/** After the GOAWAY warning, for requests in transit. */
const DRAIN_WARNING_MS = 1000;

export class Http2Connection implements OpenConnection, StreamOwner, Timed {
  setIndex = NOT_IN_SET;
  deadlineMs: number;
  readonly #services: ConnectionServices;
  readonly #listener: ListenerFacts;
  readonly #peer: Peer;
  readonly #socket: Socket;
  readonly #maxHeadBytes: number;
  readonly #session: Http2Session;
  readonly #maxFields: number;
  #streams = 0;
  readonly #resets = new ResetAllowance();
  #isDraining = false;
  #hasClientEnded = false;
  /** The client reset the response of a stream, and may not read from the connection any more. */
  #isDoubted = false;
  /** Bytes that the client had taken at the last check. */
  #takenBytes = 0;

  /** `socket` is paused; bytes that were read from it are unshifted. */
  constructor(services: ConnectionServices, listener: ListenerFacts, peer: Peer, socket: Socket) {
    this.#services = services;
    this.#listener = listener;
    this.#peer = peer;
    this.#socket = socket;
    this.#maxFields = services.limits.fieldCount ?? REQUEST_LIMITS.fieldCount;
    this.#maxHeadBytes = services.limits.headBytes ?? REQUEST_LIMITS.headBytes;
    this.deadlineMs = turnMs() + services.timeouts.idleMs;
    const { concurrentStreams, streamWindowBytes, connectionWindowBytes } = services.http2;
    this.#session = new Http2Session(
      socket,
      {
        role: "server",
        maxConcurrentStreams: concurrentStreams,
        section: {
          // Room for a few more than allowed, so that they can be counted for the response; pseudo-fields count, too.
          maxFields: this.#maxFields * 2 + 4,
          listBytes: this.#maxHeadBytes,
        },
        acceptsWebSockets: true,
        bodies: { maxWindowBytes: streamWindowBytes, sharedBytes: connectionWindowBytes },
      },
      {
        onStream: this.#onStream,
        onOverlongStream: this.#onOverlongStream,
        onPeerEnd: this.#onEnd,
        onClose: () => {
          services.deadlines.delete(this);
          socket.destroy();
        },
        onDefect: services.onDefect,
      },
    );
    services.deadlines.add(this);
  }

  /** Sends GOAWAY; requests that the client sent before it are still served (RFC 9113, 6.8). */
  drain(): void {
    if (this.#isDraining || this.#session.isFinished) return;
    this.#isDraining = true;
    if (this.#streams === 0) return this.#close();
    this.#session.warn();
    const timer = setTimeout(() => this.#close(), DRAIN_WARNING_MS);
    this.#session.ping((isAnswered) => {
      clearTimeout(timer);
      if (isAnswered) this.#close();
    });
  }

  destroy(): void {
    this.#session.destroy();
    this.#socket.destroy();
  }

  onDeadline(): void {
    if (this.#streams > 0) return this.#seeWhetherGone();
    if (this.#isDraining) return this.#endBehindLastBytes();
    this.#isDraining = true;
    this.#close();
  }

  /** The share of each stream in the client's send buffer. */
  get sendBufferBytes(): number {
    return this.#services.http2.sendBufferBytes / Math.max(1, this.#streams);
  }

  closed(isReset: boolean): void {
    this.#streams -= 1;
    if (this.#streams === 0) {
      this.#isDoubted = false;
      this.deadlineMs = turnMs() + (this.#isDraining ? DRAIN_WARNING_MS : this.#services.timeouts.idleMs);
    }
    if (isReset) this.#countReset();
  }

  doubted(): void {
    if (this.#streams === 0 || this.#isDoubted || this.#hasClientEnded) return;
    this.#isDoubted = true;
    this.#isTaking();
    this.deadlineMs = turnMs() + this.#services.timeouts.idleMs;
  }

  /** A half-closed client may still read its responses. */
  readonly #onEnd = (): void => {
    this.#hasClientEnded = true;
    this.drain();
    // By then the second GOAWAY of draining is sent.
    if (this.#streams > 0) this.deadlineMs = turnMs() + 2 * DRAIN_WARNING_MS;
  };

  /** Closes a connection without progress: a half-closed client may be gone and opens no more windows. */
  #seeWhetherGone(): void {
    const isStill = !this.#isTaking();
    if (isStill && (this.#hasClientEnded || this.#socket.writableLength > 0)) return this.destroy();
    this.#isDoubted = false;
    if (this.#hasClientEnded) this.deadlineMs = turnMs() + HALF_CLOSED_MS;
  }

  /** Waits until the client has taken the last bytes. */
  #endBehindLastBytes(): void {
    if (this.#socket.writableLength === 0 || !this.#isTaking()) return this.destroy();
    this.deadlineMs = turnMs() + HALF_CLOSED_MS;
  }

  /** Whether the client took any bytes since the last check. */
  #isTaking(): boolean {
    const before = this.#takenBytes;
    this.#takenBytes = this.#socket.bytesWritten - this.#socket.writableLength;
    return this.#takenBytes !== before;
  }

  readonly #onStream = (stream: Http2Stream, section: RawFields, isWhole: boolean): void => {
    const nowMs = performance.now();
    const head = readHttp2Head(section, isWhole, this.#maxFields);
    if ("code" in head) return this.#refuse(stream, section, head.code, head.message);
    this.#countStream();
    const client = new Http2ClientStream(stream, head, this.#services, this);
    this.#services.request(head, this.#listener, this.#peer, nowMs, client);
  };

  readonly #onOverlongStream = (stream: Http2Stream, section: RawFields): void => {
    const limits = `${this.#maxHeadBytes} bytes (32 more for each field) or ${this.#maxFields} fields`;
    this.#refuse(stream, section, "request_headers_too_large", `The request header is larger than ${limits}`);
  };

  #countStream(): void {
    this.#streams += 1;
    if (!this.#hasClientEnded && !this.#isDoubted) this.deadlineMs = Number.POSITIVE_INFINITY;
  }

  /** Responds to a malformed request. */
  #refuse(http2: Http2Stream, section: RawFields, code: ErrorCode, message: string | undefined): void {
    this.#countStream();
    if (code === "bad_request") http2.resetAfterEnd(PROTOCOL_ERROR);
    const method = sectionField(section, ":method") ?? "";
    const stream = new Http2ClientStream(http2, { ...UNREADABLE, method }, this.#services, this);
    const response = this.#services.refusal(code, message, this.#listener, this.#peer);
    const body = Buffer.from(response.body);
    stream.sendHead(response.status, response.reason, [...response.fields], lengthFraming(body.length));
    stream.sendData(body);
    stream.sendEnd();
  }

  #countReset(): void {
    if (!this.#resets.take()) this.#session.destroy(ENHANCE_YOUR_CALM, TOO_MANY_RESETS);
  }

  #close(): void {
    if (this.#session.isFinished) return;
    this.#session.close();
    // The rest of the session must not be held for a client that does not read.
    if (this.#streams === 0) this.deadlineMs = turnMs() + DRAIN_WARNING_MS;
  }
}

/** Placeholder for a malformed request, whose body is never read. */
const UNREADABLE: ReceivedHead = {
  method: "",
  target: "",
  targetForm: "origin",
  authority: undefined,
  fields: [],
  framing: { kind: "chunked" },
  upgrade: undefined,
};

/** Why an HTTP/2 field section is refused. */
interface RefusedHead {
  readonly code: ErrorCode;
  readonly message: string;
}

/** Builds a request from a field section `[name0, value0, …]`. `isWhole`: it has no body. */
export function readHttp2Head(
  section: readonly string[],
  isWhole: boolean,
  maxFields: number,
): ReceivedHead | RefusedHead {
  const read = readHttp2Request(section, withoutPseudoFields(section), isWhole, maxFields);
  if ("problem" in read) return { code: CODES[read.problem], message: read.message };
  // HTTP/2 clients send no key, since they need no proof of the handshake (RFC 8441, 5).
  if (read.upgrade !== undefined) {
    read.fields.push("sec-websocket-key", randomBytes(WEBSOCKET_KEY_BYTES).toString("base64"));
  }
  return read;
}
