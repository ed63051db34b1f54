import type { Transform } from "node:stream";
import { type ErrorCode, ERRORS } from "@headworks/gateway-contract";
import { reasonPhrase } from "@headworks/http-fields";
import { CHUNKED, fieldValue, type Framing, lengthFraming, NO_BODY, type RawFields } from "@headworks/http1";
import { type SharedBytes, trackExternalMemory } from "@headworks/sockets";
import type {
  ClientHandler,
  ClientStream,
  Decorator,
  Refusal,
  RequestContext,
  Response,
  ResponseHead,
  ResponseOrigin,
  Verdict,
} from "./context.ts";
import { type RequestIdField, X_REQUEST_ID } from "./forwarding-rules.ts";

/** Statuses without a response body (RFC 9110, 6.4.1). */
function isBodiless(method: string, status: number): boolean {
  return method === "HEAD" || status === 204 || status === 304;
}

/** The WebSocket handshake fields (RFC 6455, 11.3), and the rest. */
function apartFromHandshake(fields: RawFields): readonly [handshake: RawFields, rest: RawFields] {
  const handshake: RawFields = [];
  const rest: RawFields = [];
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] ?? "";
    const side = name.toLowerCase().startsWith("sec-websocket-") ? handshake : rest;
    side.push(name, fields[at + 1] ?? "");
  }
  return [handshake, rest];
}

const NO_DECORATORS: readonly Decorator[] = [];

/** Sends one response of the gateway or of an upstream to the client, decorated by the route. */
export class ResponseSender implements ClientHandler {
  readonly request: RequestContext;
  readonly stream: ClientStream;
  readonly #done: (delivery: ResponseSender) => void;
  status = 0;
  origin: ResponseOrigin = "short-circuit";
  code: ErrorCode | undefined;
  sentBytes = 0;
  isComplete = false;
  /** It holds an admission permit. */
  hasPermit = false;
  waitsForPermit = false;
  /** The response may be stored, and was passed to the store. */
  capturesResponse = false;
  wasCaptured = false;
  #isEnded = false;
  #validated: Response | undefined;
  #filter: Transform | undefined;
  #trailers: RawFields | undefined;
  #isFilterFull = false;
  /** Limit of bytes buffered for a slow client before the source of the response is paused. */
  bufferBytes = 0;
  /** Called when the client, or a filter, accepts more. */
  onDrain: (() => void) | undefined;

  constructor(request: RequestContext, stream: ClientStream, done: (delivery: ResponseSender) => void) {
    this.request = request;
    this.stream = stream;
    this.#done = done;
    // Until the body is read, only a disconnect of the client matters.
    stream.handler = this;
  }

  onBodyData(): void {}
  onBodyTrailers(): void {}
  onBodyEnd(): void {}
  onBodyBatch(): void {}

  onClientDrain(): void {
    this.clientDrained();
  }

  onClientGone(): void {
    this.clientGone();
  }

  onRefused(refusal: Refusal): void {
    if (this.isStarted) this.abort();
    else this.response(refusal, "short-circuit");
  }

  get #idField(): RequestIdField {
    return this.request.generation.requestIdField ?? X_REQUEST_ID;
  }

  get isStarted(): boolean {
    return this.status !== 0;
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  response(verdict: NonNullable<Verdict>, origin: ResponseOrigin): void {
    if (this.#isEnded || this.isStarted) return;
    if (isRefusal(verdict)) {
      this.code = verdict.code;
      if (verdict.fields !== undefined) this.#forgetResponseFields(verdict.fields);
    }
    const whole = isRefusal(verdict) ? errorResponse(verdict, this.request.requestId) : verdict;
    const body = typeof whole.body === "string" ? Buffer.from(whole.body) : whole.body;
    const head: ResponseHead = {
      status: whole.status,
      reason: reasonPhrase(whole.status),
      fields: [...whole.fields],
    };
    const bodiless = isBodiless(this.request.method, whole.status);
    const framing = whole.status === 204 || whole.status === 304 ? NO_BODY : lengthFraming(body.length);
    const sent = this.head(head, framing, origin);
    if (!bodiless && sent.kind !== "none" && body.length > 0) this.data(body);
    this.end(undefined);
  }

  /** Removes response fields that the refusal itself sets, such as the limit that refused. */
  #forgetResponseFields(said: readonly string[]): void {
    const { request } = this;
    if (request.responseFields === undefined) return;
    const names = new Set(said.filter((_text, at) => at % 2 === 0).map((name) => name.toLowerCase()));
    const isNew = (at: number): boolean => !names.has((request.responseFields?.[at - (at % 2)] ?? "").toLowerCase());
    request.responseFields = request.responseFields.filter((_text, at) => isNew(at));
  }

  /** Starts a response; `head.fields` are changed into the client's. Returns the framing of the body. */
  head(head: ResponseHead, framing: Framing, origin: ResponseOrigin): Framing {
    const { request } = this;
    const { route } = request;
    this.origin = origin;
    let sent = framing;
    if (route !== undefined && origin !== "short-circuit") {
      if (route.bodyFilters.length > 0 && !isBodiless(request.method, head.status)) {
        sent = this.#startFilter(head, framing, origin);
      }
    }
    // Before decorators: compression derives from it what GET would have returned.
    if (request.method === "HEAD" && sent.kind === "length") {
      head.fields.push("Content-Length", String(sent.lengthBytes));
      sent = NO_BODY;
    }
    this.#decorate(head, origin);
    // Also for an upstream without a clock (RFC 9110, 6.6.1).
    if (fieldValue(head.fields, "date") === undefined) head.fields.push("Date", httpDateNow());
    this.status = head.status;
    this.stream.sendHead(head.status, head.reason, head.fields, sent);
    return sent;
  }

  data(piece: SharedBytes): void {
    if (this.#filter !== undefined) {
      // The memory of the piece is reused for the next read.
      this.#isFilterFull = !this.#filter.write(Buffer.from(piece));
      trackExternalMemory(piece.length);
      return;
    }
    this.sentBytes += piece.length;
    this.stream.sendData(piece);
  }

  /** Sends a stored response when the upstream's response, which confirms it, has ended. */
  respondAtEnd(response: Response): void {
    this.#validated = response;
  }

  end(trailers: RawFields | undefined): void {
    if (this.#validated !== undefined && !this.isStarted) return this.response(this.#validated, "action");
    if (this.#filter !== undefined) {
      this.#trailers = trailers;
      this.#filter.end();
      return;
    }
    this.#finish(true);
    this.stream.sendEnd(trailers);
  }

  /** Writes buffered output. False: stop producing until `onDrain`. */
  flush(): boolean {
    return this.stream.flush(this.bufferBytes) && !this.#isFilterFull;
  }

  /** The response cannot be completed, and the client must see that. */
  abort(): void {
    if (this.#isEnded) return;
    this.#filter?.destroy();
    this.#finish(false);
    this.stream.abort();
  }

  /** The client disconnected. */
  clientGone(): void {
    if (this.#isEnded) return;
    this.#filter?.destroy();
    this.#finish(false);
  }

  /** A 101 of the upstream: its head is decorated, the rest is a tunnel. `fields`: no hop-by-hop fields. */
  switched(fields: RawFields, protocol: string): void {
    this.status = 101;
    this.origin = "upstream";
    const [handshake, rest] = apartFromHandshake(fields);
    const head: ResponseHead = { status: 101, reason: reasonPhrase(101), fields: rest };
    this.#decorate(head, "upstream");
    // The handshake belongs to client and upstream: a change by the route would fail the client's check.
    const [, decorated] = apartFromHandshake(head.fields);
    decorated.push(...handshake, "Connection", "Upgrade", "Upgrade", protocol);
    this.stream.sendHead(101, head.reason, decorated, NO_BODY);
  }

  tunnelEnded(sentBytes: number): void {
    this.sentBytes = sentBytes;
    this.#finish(true);
  }

  /** Applies the route's decorators and the request's response fields. */
  #decorate(head: ResponseHead, origin: ResponseOrigin): void {
    const { request } = this;
    const { route, missedRoute } = request;
    for (const decorator of (route ?? missedRoute)?.decorators ?? NO_DECORATORS) {
      if (origin === "short-circuit" && decorator.on === "action-responses") continue;
      if (route === undefined && decorator.on !== "every-path-response") continue;
      decorator.decorate(request, head, origin);
    }
    if (request.responseFields !== undefined) head.fields.push(...request.responseFields);
    this.#idField.pushIds(head.fields, request);
  }

  #startFilter(head: ResponseHead, framing: Framing, origin: ResponseOrigin): Framing {
    for (const candidate of this.request.route?.bodyFilters ?? []) {
      const filter = candidate.filter(this.request, head, framing, origin);
      if (filter === undefined) continue;
      this.#filter = filter;
      filter.on("data", (piece: Buffer) => {
        this.sentBytes += piece.length;
        this.stream.sendData(piece);
        if (!this.stream.flush(this.bufferBytes)) filter.pause();
      });
      filter.on("drain", () => {
        this.#isFilterFull = false;
        this.onDrain?.();
      });
      filter.on("end", () => {
        if (this.#isEnded) return;
        this.#finish(true);
        this.stream.sendEnd(this.#trailers);
      });
      filter.on("error", () => this.abort());
      return CHUNKED;
    }
    return framing;
  }

  clientDrained(): void {
    this.#filter?.resume();
    if (!this.#isFilterFull) this.onDrain?.();
  }

  #finish(isComplete: boolean): void {
    this.#isEnded = true;
    this.isComplete = isComplete;
    this.#done(this);
  }
}

let dateText = "";
let dateUntilMs = 0;

/** The current second as IMF-fixdate. */
function httpDateNow(): string {
  const nowMs = Date.now();
  if (nowMs >= dateUntilMs) {
    dateText = new Date(nowMs).toUTCString();
    dateUntilMs = nowMs - (nowMs % 1000) + 1000;
  }
  return dateText;
}

/** Whether a verdict is a refusal, whose body is created here, rather than a whole response. */
function isRefusal(verdict: NonNullable<Verdict>): verdict is Refusal {
  return "code" in verdict;
}

/** The response for a refusal: status and message of its code, in the envelope of both planes. */
export function errorResponse(refusal: Refusal, requestId: string): Response {
  const { status, message } = ERRORS[refusal.code];
  const error = { code: refusal.code, message: refusal.message ?? message, request_id: requestId };
  return {
    status,
    fields: ["Content-Type", "application/json", ...(refusal.fields ?? [])],
    body: JSON.stringify({ error }),
  };
}
