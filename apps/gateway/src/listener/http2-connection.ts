// Tested by ../../test/http2.test.ts
import { constants, performServerHandshake, type Http2Session, type ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import type { ErrorCode } from "@headworks/gateway-contract";
import { lengthFraming, REQUEST_LIMITS, type RawFields } from "@headworks/http1";
import { ConnectionWindow, NOWHERE, type Timed } from "@headworks/sockets";
import type { ListenerFacts, Peer } from "#request/client-stream.ts";
import {
  HALF_CLOSED_MS,
  type ConnectionServices,
  type OpenConnection,
  type ReceivedHead,
} from "./connection-services.ts";
import { Http2ClientStream, type StreamOwner } from "./http2-client-stream.ts";
import { readHttp2Head } from "./http2-head.ts";

const { NGHTTP2_ENHANCE_YOUR_CALM, NGHTTP2_FLAG_END_STREAM, NGHTTP2_NO_ERROR } = constants;

/**
 * Streams that ended before their answer did, whoever's doing that was: each made the gateway work for nothing, so a
 * connection may have this many at once, and so many more in each second.
 */
const RESET_BURST = 500;
const RESETS_PER_S = 100;
/** What one session may hold; its streams hand over little more than their share of the send buffer. */
const SESSION_MB = 32;
/** Above every stream that can be: the client learns that the end is near, nothing is refused yet. */
const HIGHEST_STREAM = 2 ** 31 - 1;
/** After the warning, for requests that are on their way. */
const DRAIN_WARNING_MS = 1000;

/** One client connection that speaks HTTP/2. */
export class Http2Connection implements OpenConnection, StreamOwner, Timed {
  rosterPlace = NOWHERE;
  deadlineMs: number;
  readonly window: ConnectionWindow;
  readonly #services: ConnectionServices;
  readonly #listener: ListenerFacts;
  readonly #peer: Peer;
  readonly #socket: Socket;
  readonly #session: Http2Session;
  readonly #mostFields: number;
  #streams = 0;
  #resetsLeft = RESET_BURST;
  #resetsAtMs = 0;
  #isDraining = false;
  #hasClientEnded = false;
  /** What had been sent when the client was last seen to take something behind its end. */
  #sentBytes = 0;

  /** The socket is paused, and bytes that were read from it are back in it. */
  constructor(services: ConnectionServices, listener: ListenerFacts, peer: Peer, socket: Socket) {
    this.#services = services;
    this.#listener = listener;
    this.#peer = peer;
    this.#socket = socket;
    this.#mostFields = services.limits.fieldCount ?? REQUEST_LIMITS.fieldCount;
    this.deadlineMs = performance.now() + services.timeouts.idleMs;
    const { concurrentStreams, streamWindowBytes } = services.http2;
    const session = performServerHandshake(socket, {
      // A few more than allowed get a proper answer, and pseudo-fields count too; more are reset.
      maxHeaderListPairs: this.#mostFields * 2 + 4,
      maxSessionMemory: SESSION_MB,
      maxSessionInvalidFrames: 100,
      maxSessionRejectedStreams: 100,
      maxSettings: 32,
      // What upstreams say twice is passed on twice; the stricter way throws.
      strictSingleValueFields: false,
      settings: {
        enablePush: false,
        // WebSockets (RFC 8441).
        enableConnectProtocol: true,
        initialWindowSize: streamWindowBytes,
        maxConcurrentStreams: concurrentStreams,
        maxHeaderListSize: services.limits.headBytes ?? REQUEST_LIMITS.headBytes,
      },
    });
    this.#session = session;
    this.window = new ConnectionWindow(session, services.http2);
    session.on("stream", this.#onStream);
    session.on("error", ignoreError);
    session.on("close", () => {
      services.deadlines.delete(this);
      socket.destroy();
    });
    socket.on("end", this.#onEnd);
    // Its end and its errors are told only while it flows; what it holds already is the session's first.
    setImmediate(() => socket.resume());
    services.deadlines.add(this);
  }

  /** Says GOAWAY; requests that the client had sent by then are answered (RFC 9113, 6.8). */
  drain(): void {
    if (this.#isDraining || this.#session.destroyed) return;
    this.#isDraining = true;
    if (this.#streams === 0 && !this.#session.connecting) return this.#close();
    this.#session.goaway(NGHTTP2_NO_ERROR, HIGHEST_STREAM);
    const timer = setTimeout(() => this.#close(), DRAIN_WARNING_MS);
    const known = this.#session.ping((error) => {
      clearTimeout(timer);
      if (error === null) this.#close();
    });
    if (!known) this.#close();
  }

  destroy(): void {
    this.#session.destroy();
    this.#socket.destroy();
  }

  onDeadline(): void {
    if (this.#streams > 0) return this.#seeWhetherGone();
    if (this.#isDraining) return this.destroy();
    this.#isDraining = true;
    this.#close();
  }

  /** Its share of what one client may make wait here. */
  get sendBufferBytes(): number {
    return this.#services.http2.sendBufferBytes / Math.max(1, this.#streams);
  }

  closed(isReset: boolean): void {
    this.#streams -= 1;
    if (this.#streams === 0) {
      this.deadlineMs = performance.now() + (this.#isDraining ? DRAIN_WARNING_MS : this.#services.timeouts.idleMs);
    }
    if (isReset) this.#countReset();
  }

  /** Whoever ends their side may still read the answers. */
  readonly #onEnd = (): void => {
    this.#hasClientEnded = true;
    this.drain();
    // What draining says itself is out by then.
    if (this.#streams > 0) this.deadlineMs = performance.now() + 2 * DRAIN_WARNING_MS;
  };

  /** Of writes that fail because the client is gone nobody is told; nor can a full window open any more. */
  #seeWhetherGone(): void {
    if (!this.#hasClientEnded) return;
    const { bytesWritten } = this.#socket;
    if (bytesWritten === this.#sentBytes) return this.destroy();
    this.#sentBytes = bytesWritten;
    this.deadlineMs = performance.now() + HALF_CLOSED_MS;
  }

  stuck(): void {
    this.destroy();
  }

  readonly #onStream = (stream: ServerHttp2Stream, _headers: unknown, flags: number, section: RawFields): void => {
    const nowMs = performance.now();
    const isWhole = (flags & NGHTTP2_FLAG_END_STREAM) !== 0;
    const head = readHttp2Head(section, isWhole, this.#mostFields);
    this.#streams += 1;
    if (!this.#hasClientEnded) this.deadlineMs = Number.POSITIVE_INFINITY;
    if ("code" in head) {
      const method = section[section.indexOf(":method") + 1] ?? "";
      const unreadable = new Http2ClientStream(stream, { ...UNREADABLE, method }, this.#services, this);
      this.#refuse(unreadable, head.code, head.message);
    } else {
      const client = new Http2ClientStream(stream, head, this.#services, this);
      this.#services.request(head, this.#listener, this.#peer, nowMs, client);
    }
  };

  #refuse(stream: Http2ClientStream, code: ErrorCode, message: string | undefined): void {
    const answer = this.#services.refusal(code, message, this.#listener);
    const body = Buffer.from(answer.body);
    stream.sendHead(answer.status, answer.reason, [...answer.fields], lengthFraming(body.length));
    stream.sendData(body);
    stream.sendEnd();
  }

  #countReset(): void {
    const nowMs = performance.now();
    const back = ((nowMs - this.#resetsAtMs) / 1000) * RESETS_PER_S;
    this.#resetsLeft = Math.min(RESET_BURST, this.#resetsLeft + back) - 1;
    this.#resetsAtMs = nowMs;
    if (this.#resetsLeft < 0 && !this.#session.destroyed) this.#session.destroy(undefined, NGHTTP2_ENHANCE_YOUR_CALM);
  }

  #close(): void {
    if (this.#session.destroyed) return;
    this.#session.close();
    // What is left of the session must not wait for a client that reads nothing.
    if (this.#streams === 0) this.deadlineMs = performance.now() + DRAIN_WARNING_MS;
  }
}

/** Stands for a request that could not be read: its body, if any, is never wanted. */
const UNREADABLE: ReceivedHead = {
  method: "",
  target: "",
  targetForm: "origin",
  authority: undefined,
  fields: [],
  framing: { kind: "chunked" },
  upgrade: undefined,
};

function ignoreError(): void {
  // "close" follows and does what is needed.
}
