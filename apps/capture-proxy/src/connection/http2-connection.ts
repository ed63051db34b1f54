import { randomBytes } from "node:crypto";
import { parseHostPort } from "@headworks/host-patterns";
import { withoutPseudoFields } from "@headworks/http-fields";
import { type Http2RequestProblem, isAuthorityWithPort, type RawFields, readHttp2Request } from "@headworks/http1";
import {
  ENHANCE_YOUR_CALM,
  Http2Session,
  type Http2Stream,
  PROTOCOL_ERROR,
  ResetAllowance,
  sectionField,
  sectionLimits,
} from "@headworks/http2";
import { ConnectionSet, NOT_IN_SET, type Timed } from "@headworks/sockets";
import type { ClientFacts } from "#exchange/exchange.ts";
import type { Failure } from "#exchange/failure.ts";
import type { HeadLimits } from "#upstream/origin.ts";
import { internalFailure, invalidRequest } from "./client-failures.ts";
import type { ClientSocket } from "./http-exchange.ts";
import {
  type PlannedHead,
  planRequest,
  type ReceivedHead,
  refusedHttp2Request,
  type TunnelBase,
} from "./request-plan.ts";
import { Http2ClientStream, type StreamMember, type StreamOwner } from "./http2-client-stream.ts";
import type { ProxyServices } from "./proxy-services.ts";
import type { ConnectHead, OpenTunnel } from "./tunnel-exchange.ts";
import { UpstreamConnections } from "./upstream-connections.ts";

/** Further requests are refused as unprocessed (RFC 9113, 5.1.2). */
export const MAX_CONCURRENT_STREAMS = 128;
/** Fields beyond the limit that are still read, so that the error response can count them. */
const COUNTED_FIELDS = 100;
/** Between the first GOAWAY and the final one, for requests in flight. */
const DRAIN_WARNING_MS = 1000;
const WEBSOCKET_KEY_BYTES = 16;
const TOO_MANY_RESETS = new Error("Too many streams ended before their responses");

/** A client that closed its sending side counts as gone after this time without progress. */
const HALF_CLOSED_MS = 5000;
const HALF_CLOSED_LOOK_MS = 250;

const STATUS: Readonly<Record<Http2RequestProblem["problem"], number>> = {
  malformed: 400,
  "too-many-fields": 431,
  tunnel: 501,
};

/**
 * Either the tunnel that the connection is inside, or the function that opens tunnels for clients of the proxy itself.
 */
type Leading = { readonly base: TunnelBase } | { readonly openTunnel: OpenTunnel };

/** One HTTP/2 client connection: inside an intercepted tunnel, or to the proxy itself. */
export class Http2Connection implements StreamOwner, Timed {
  setIndex = NOT_IN_SET;
  deadlineMs: number;
  readonly services: ProxyServices;
  readonly facts: ClientFacts;
  readonly origins: UpstreamConnections;
  readonly #socket: ClientSocket;
  readonly #base: TunnelBase | undefined;
  readonly #openTunnel: OpenTunnel | undefined;
  readonly #session: Http2Session;
  readonly #streams = new ConnectionSet<StreamMember>();
  readonly #limits: HeadLimits;
  readonly #resets = new ResetAllowance();
  #isDraining = false;
  #hasReceived = false;

  /** Takes a paused socket with all bytes read so far unshifted. */
  constructor(services: ProxyServices, socket: ClientSocket, facts: ClientFacts, leading: Leading) {
    this.services = services;
    this.facts = facts;
    this.origins = new UpstreamConnections(services, facts.address, (origin) => {
      services.pipeline.closing(facts, origin);
      // Propagates the origin's close to the client of a tunnel.
      if (this.#base !== undefined) this.drain();
    });
    this.#socket = socket;
    this.#base = "base" in leading ? leading.base : undefined;
    this.#openTunnel = "openTunnel" in leading ? leading.openTunnel : undefined;
    this.deadlineMs = performance.now() + services.policy().idleTimeoutMs;
    this.#limits = services.policy().headLimits;
    this.#session = new Http2Session(
      socket,
      {
        role: "server",
        maxConcurrentStreams: MAX_CONCURRENT_STREAMS,
        section: sectionLimits(this.#limits, COUNTED_FIELDS),
        acceptsWebSockets: true,
      },
      {
        onStream: (http2, section, isWhole) => {
          this.#take(http2, (stream) => this.#begin(http2, stream, section, isWhole));
        },
        onOverlongStream: (http2, section, isWhole) => {
          this.#take(http2, (stream) => this.#refuse(stream, section, isWhole, overlong(this.#limits)));
        },
        onSettings: () => {
          this.#hasReceived = true;
        },
        onGoaway: () => services.pipeline.closing(facts, undefined),
        onPeerEnd: this.#onEnd,
        onClose: this.#onClose,
        // The session has closed the connection.
        onDefect: (error) => services.log.error({ err: error }, "A connection of a client failed"),
      },
    );
    services.deadlines.add(this);
  }

  get hasReceived(): boolean {
    return this.#hasReceived;
  }

  /** Sends GOAWAY; requests sent by then are still served (RFC 9113, 6.8). */
  drain(): void {
    if (this.#isDraining || this.#session.isFinished) return;
    this.#isDraining = true;
    if (this.#streams.size === 0) return this.#close();
    this.services.pipeline.closing(this.facts, undefined);
    this.#session.warn();
    this.#streams.forEach(({ stream }) => stream.drain());
    const timer = setTimeout(() => this.#close(), DRAIN_WARNING_MS);
    this.#session.ping((isAcknowledged) => {
      clearTimeout(timer);
      if (isAcknowledged) this.#close();
    });
  }

  abort(failure: Failure): void {
    this.#streams.forEach(({ stream }) => stream.abort(failure));
    this.#session.destroy();
    this.#socket.destroy();
  }

  onDeadline(): void {
    if (this.#streams.size > 0) return;
    if (this.#isDraining) {
      this.#session.destroy();
      this.#socket.destroy();
      return;
    }
    this.#isDraining = true;
    this.#close();
  }

  closed(stream: Http2ClientStream, isWasted: boolean): void {
    this.#streams.delete(stream.member);
    if (this.#streams.size === 0) {
      const restMs = this.#isDraining ? DRAIN_WARNING_MS : this.services.policy().idleTimeoutMs;
      this.deadlineMs = performance.now() + restMs;
    }
    if (isWasted) this.#countReset();
  }

  #take(http2: Http2Stream, begin: (stream: Http2ClientStream) => void): void {
    this.#hasReceived = true;
    this.deadlineMs = Number.POSITIVE_INFINITY;
    const stream = new Http2ClientStream(this, http2);
    this.#streams.add(stream.member);
    try {
      begin(stream);
    } catch (error) {
      // A bug in the proxy ends this stream, not the process.
      this.services.log.error({ err: error }, "A stream of a client failed");
      stream.abort(internalFailure(error));
    }
  }

  #begin(http2: Http2Stream, stream: Http2ClientStream, section: RawFields, isWhole: boolean): void {
    const openTunnel = this.#openTunnel;
    if (openTunnel !== undefined && isHttp2Connect(section)) return this.#connect(http2, stream, section, openTunnel);
    const head = readHttp2Head(section, isWhole, this.#base === undefined, this.#limits.fieldCount);
    if ("problem" in head) {
      resetIfMalformed(http2, head);
      return this.#refuse(stream, section, isWhole, head);
    }
    const hostPort = parseHostPort(head.authority);
    const planned = planRequest(
      head,
      this.#base,
      "issue" in hostPort ? undefined : hostPort,
      this.services,
      this.#socket,
    );
    if (planned.kind === "refused") return stream.refuse(planned.status, planned.failure, head.method, head.fields);
    stream.begin(head, planned.request, planned.plan);
  }

  /** Records the refused request if its URL can be determined. */
  #refuse(stream: Http2ClientStream, section: RawFields, isWhole: boolean, problem: Http2RequestProblem): void {
    const status = STATUS[problem.problem];
    const failure = { ...refusal(problem), status };
    const refused = refusedHttp2Request(section, isWhole, failure, this.#base);
    if (refused === undefined) stream.refuse(status, failure, sectionField(section, ":method") ?? "", []);
    else stream.begin(refused.head, refused.request, refused.plan);
    this.#countReset();
  }

  #connect(http2: Http2Stream, stream: Http2ClientStream, section: RawFields, open: OpenTunnel): void {
    const head = readHttp2Connect(section, this.#limits.fieldCount);
    if ("problem" in head) {
      resetIfMalformed(http2, head);
      return stream.refuse(STATUS[head.problem], refusal(head), "CONNECT", []);
    }
    // Also malformed (RFC 9113, 8.5), but it names a host for its entry.
    if (!isAuthorityWithPort(head.target)) http2.resetAfterEnd(PROTOCOL_ERROR);
    stream.becomeTunnel((client) => open(client, head, undefined));
  }

  #countReset(): void {
    if (!this.#resets.take()) this.#session.destroy(ENHANCE_YOUR_CALM, TOO_MANY_RESETS);
  }

  /**
   * A client that closed its sending side may still read, or be gone. It sends no more WINDOW_UPDATE, so a response
   * blocked on a window stays blocked.
   */
  readonly #onEnd = (): void => {
    this.drain();
    let writtenBytes = Number.NaN;
    let movedMs = performance.now();
    const timer = setInterval(() => {
      if (this.#session.isFinished) return clearInterval(timer);
      const nowMs = performance.now();
      const { bytesWritten = -this.#socket.writableLength } = this.#socket;
      const isMoving = bytesWritten !== writtenBytes;
      writtenBytes = bytesWritten;
      if (isMoving) movedMs = nowMs;
      if ((!isMoving && this.#isBlocked) || nowMs - movedMs > HALF_CLOSED_MS) this.#session.destroy();
    }, HALF_CLOSED_LOOK_MS).unref();
  };

  get #isBlocked(): boolean {
    let isBlocked = false;
    this.#streams.forEach(({ stream }) => (isBlocked ||= stream.isBlocked));
    return isBlocked;
  }

  #close(): void {
    if (this.#session.isFinished) return;
    this.#session.close();
    // The close must not wait for a client that reads nothing.
    if (this.#streams.size === 0) this.deadlineMs = performance.now() + DRAIN_WARNING_MS;
  }

  readonly #onClose = (): void => {
    this.services.deadlines.delete(this);
    this.#socket.destroy();
    this.origins.end();
  };
}

/** A malformed request is a stream error even if it gets a response (RFC 9113, 8.1.1). */
function resetIfMalformed(http2: Http2Stream, { problem }: Http2RequestProblem): void {
  if (problem === "malformed") http2.resetAfterEnd(PROTOCOL_ERROR);
}

function overlong({ headBytes, fieldCount }: HeadLimits): Http2RequestProblem {
  const message = `The request has more than ${headBytes} bytes of fields or many more than ${fieldCount} fields`;
  return { problem: "too-many-fields", message };
}

function refusal({ problem, message }: Http2RequestProblem): Failure {
  const text = problem === "tunnel" ? "CONNECT is not allowed inside a tunnel; send it to the proxy itself" : message;
  return invalidRequest(text);
}

interface Http2Head extends ReceivedHead, PlannedHead {
  readonly version: "2";
  readonly target: string;
  readonly authority: string;
}

/**
 * Reads the field section of a request.
 * @param isWhole  no body follows
 * @param isProxied  sent to the proxy itself, so the target is absolute
 */
function readHttp2Head(
  section: readonly string[],
  isWhole: boolean,
  isProxied: boolean,
  maxFields: number,
): Http2Head | Http2RequestProblem {
  const read = readHttp2Request(section, withoutPseudoFields(section), isWhole, maxFields);
  if ("problem" in read) return read;
  const { method, scheme, authority, fields, framing, upgrade } = read;
  if (upgrade !== undefined) addUpgrade(fields, upgrade);
  const isAbsolute = isProxied && read.targetForm === "origin";
  return {
    method,
    target: isAbsolute ? `${scheme}://${authority}${read.target}` : read.target,
    targetForm: isAbsolute ? "absolute" : read.targetForm,
    version: "2",
    authority,
    fields,
    fieldLines: undefined,
    framing,
    upgrade,
    keepAlive: true,
  };
}

/** A CONNECT for a tunnel. With :protocol it begins a WebSocket instead. */
export function isHttp2Connect(section: readonly string[]): boolean {
  return pseudoField(section, ":method") === "CONNECT" && pseudoField(section, ":protocol") === undefined;
}

/**
 * Reads a CONNECT for a tunnel, which has only :authority (RFC 9113, 8.5); its fields are checked like any request's.
 */
export function readHttp2Connect(section: readonly string[], maxFields: number): ConnectHead | Http2RequestProblem {
  if (pseudoField(section, ":scheme") !== undefined || pseudoField(section, ":path") !== undefined) {
    return { problem: "malformed", message: "CONNECT has neither :scheme nor :path" };
  }
  const authority = pseudoField(section, ":authority") ?? "";
  const asGet = [":method", "GET", ":scheme", "http", ":path", "/", ":authority", authority];
  const read = readHttp2Request(asGet, withoutPseudoFields(section), true, maxFields);
  return "problem" in read ? read : { target: read.authority, fields: read.fields };
}

function pseudoField(section: readonly string[], name: string): string | undefined {
  for (let at = 0; at < section.length; at += 2) if (section[at] === name) return section[at + 1];
  return undefined;
}

/** Adds the HTTP/1.1 equivalent of an extended CONNECT (RFC 8441, 5). */
function addUpgrade(fields: string[], upgrade: string): void {
  const key = randomBytes(WEBSOCKET_KEY_BYTES).toString("base64");
  fields.push("connection", "upgrade", "upgrade", upgrade, "sec-websocket-key", key);
}
