import { randomUUID } from "node:crypto";
import {
  type CallForm,
  parseCallForm,
  parseCallPath,
  type ReaderEnd,
  readStatus,
  readTrailerMessage,
  statusOfHttp,
} from "@headworks/grpc-framing";
import { fieldValue, fieldValues, type RawFields } from "@headworks/http1";
import type { ClientFacts, ExchangeView } from "#exchange/exchange.ts";
import type { Observer } from "#exchange/phases.ts";
import type { SliceHost } from "#slice.ts";
import type { StreamRecorder } from "#storage/streams/stream-store.ts";
import { MessageStream, type ReadMessage } from "./message-stream.ts";

/** Longer names are ignored. */
const MAX_NAME_LENGTH = 512;

export function createGrpcObserver(host: Pick<SliceHost, "streams" | "settings" | "clock" | "log">): Observer {
  const watches = new Map<ExchangeView, CallWatch>();
  const connections = new ConnectionIds();
  /** Clients with closing connections; calls already sent still begin. */
  const closing = new WeakSet<ClientFacts>();
  const onFault = (error: unknown): void => host.log.error({ err: error }, "A gRPC call could not be read on");
  return {
    name: "grpc",
    onStarted: (exchange) => {
      const { running } = host.settings;
      const form = parseCallForm(fieldValue(exchange.request.fields, "content-type"));
      if (form === undefined || !exchange.isRecorded) return;
      const options = {
        exchange,
        recorder: host.streams.open(exchange, "grpc"),
        facts: { form, attributes: attributesOf(exchange, form, connections.idFor(exchange)) },
        maxMessageBytes: running.max_body_size,
        now: () => host.clock.now(),
        onFault,
      };
      const watch = new CallWatch(options, running.capture_request_bodies);
      watches.set(exchange, watch);
      if (closing.has(exchange.client)) watch.closing();
    },
    onResponding: (exchange) => {
      if (watches.size > 0) watches.get(exchange)?.responding(host.settings.running.capture_response_bodies);
    },
    onClosing: (client, origin) => {
      if (origin === undefined) closing.add(client);
      for (const [{ client: own, request }, watch] of watches) {
        const isThere = origin === undefined || (origin.host === request.host && origin.port === request.port);
        if (own === client && isThere) watch.closing();
      }
    },
    onFinished: (exchange) => {
      if (watches.size === 0) return;
      watches.get(exchange)?.finished();
      watches.delete(exchange);
    },
  };
}

function attributesOf(
  { request }: ExchangeView,
  form: CallFacts["form"],
  connectionId: string,
): Readonly<Record<string, string>> {
  const call = parseCallPath(request.path);
  const protocol = form.protocol === "grpc" ? "grpc" : form.isText ? "grpc-web-text" : "grpc-web";
  const encoding = fieldValue(request.fields, "grpc-encoding");
  const isNamed = call !== undefined && call.service.length + call.method.length <= MAX_NAME_LENGTH;
  return {
    connection: connectionId,
    protocol,
    ...(form.format === "proto" ? {} : { format: form.format }),
    ...(isNamed ? { service: call.service, method: call.method, path: `/${call.service}/${call.method}` } : {}),
    ...(encoding === undefined ? {} : { request_encoding: encoding }),
  };
}

/** Ids of pairs of client connection and server, the same for all calls over them, dropped with the connection. */
class ConnectionIds {
  readonly #ids = new WeakMap<ClientFacts, Map<string, string>>();

  idFor({ client, request }: ExchangeView): string {
    let ids = this.#ids.get(client);
    if (ids === undefined) {
      ids = new Map();
      this.#ids.set(client, ids);
    }
    const server = `${request.host}:${request.port}`;
    const id = ids.get(server) ?? randomUUID();
    ids.set(server, id);
    return id;
  }
}

/** Facts of a call that its exchange does not have. */
interface CallFacts {
  readonly form: CallForm;
  readonly attributes: Readonly<Record<string, string>>;
}

interface CallWatchOptions {
  readonly exchange: ExchangeView;
  readonly recorder: StreamRecorder;
  readonly facts: CallFacts;
  /** Maximum bytes kept per message. */
  readonly maxMessageBytes: number;
  readonly now: () => number;
  /** Reports an internal error; reading of that side stops. */
  readonly onFault: (error: unknown) => void;
}

/** Longer media types are cut in issues. */
const MAX_TYPE_LENGTH = 80;
/** Further issues are dropped. */
const MAX_ISSUES = 10;

/** Follows one call: records its messages as they pass, and its end. */
class CallWatch {
  readonly #options: CallWatchOptions;
  readonly #request: MessageStream;
  #response: MessageStream | undefined;
  readonly #issues: string[] = [];
  #trailers: readonly string[] | undefined;
  #isFinished = false;

  constructor(options: CallWatchOptions, keepsBytes: boolean) {
    this.#options = options;
    const { exchange, recorder, facts } = options;
    recorder.change({ state: "open", attributes: facts.attributes });
    this.#request = this.#stream("send", facts.form, exchange.request.fields, keepsBytes, () =>
      recorder.change({ attributes: { request_ended: "1" } }),
    );
    exchange.requestBody.watch(this.#request);
  }

  /** The response head is known; the body is watched if it is gRPC. */
  responding(keepsBytes: boolean): void {
    const { exchange, recorder } = this.#options;
    const { response } = exchange;
    if (response === undefined || this.#response !== undefined) return;
    const form = parseCallForm(fieldValue(response.fields, "content-type"));
    const encoding = fieldValue(response.fields, "grpc-encoding");
    if (encoding !== undefined) recorder.change({ attributes: { response_encoding: encoding } });
    if (form === undefined) return;
    this.#response = this.#stream("receive", form, response.fields, keepsBytes, () =>
      recorder.change({ attributes: { response_ended: "1" } }),
    );
    exchange.responseBody.watch(this.#response);
  }

  /** The connection accepts no further calls. */
  closing(): void {
    this.#options.recorder.change({ state: "closing" });
  }

  /** Records the status after everything before it. */
  finished(): void {
    if (this.#isFinished) return;
    this.#isFinished = true;
    const waiting = [this.#request.settled(), this.#response?.settled()].filter((promise) => promise !== undefined);
    if (waiting.length === 0) this.#conclude();
    else void Promise.all(waiting).then(() => this.#conclude());
  }

  #stream(
    direction: "send" | "receive",
    form: CallForm,
    fields: Readonly<RawFields>,
    keepsBytes: boolean,
    onEnd: () => void,
  ): MessageStream {
    return new MessageStream({
      form,
      encoding: (fieldValue(fields, "grpc-encoding") ?? "identity").trim().toLowerCase(),
      contentEncoding: fieldValues(fields, "content-encoding"),
      maxMessageBytes: this.#options.maxMessageBytes,
      onMessage: (message, isReplaced) => this.#record(direction, message, keepsBytes, isReplaced),
      onEnd: (end) => {
        this.#noteEnd(direction, end);
        onEnd();
      },
      onFault: this.#options.onFault,
    });
  }

  #record(direction: "send" | "receive", message: ReadMessage, keepsBytes: boolean, isReplaced: boolean): void {
    if (message.isTrailer) this.#noteTrailers(readTrailerMessage(message.bytes), message.sizeBytes);
    this.#options.recorder.frame({
      direction,
      type: message.isTrailer ? "trailer" : "message",
      opcode: 0,
      isFinal: message.isWhole,
      atMs: this.#options.now(),
      payload: keepsBytes ? message.bytes : message.bytes.subarray(0, 0),
      sizeBytes: message.sizeBytes,
      wireBytes: message.wireBytes,
      isCompressed: message.isCompressed,
      ...(isReplaced ? { effect: "modified" as const } : {}),
      ...(message.stop === undefined ? {} : { attributes: { stop: message.stop } }),
    });
  }

  #noteEnd(direction: "send" | "receive", end: ReaderEnd): void {
    const side = direction === "send" ? "request" : "response";
    if (end.kind === "broken") this.#issue(`${side}: ${end.reason}`);
    else if (end.kind === "cut") {
      const expected = end.sizeBytes === undefined ? "a prefix" : `a message of ${end.sizeBytes} bytes`;
      this.#issue(`${side}: ended after ${end.bytes.length} bytes of ${expected}`);
    }
  }

  #issue(text: string): void {
    if (this.#issues.length < MAX_ISSUES) this.#issues.push(text);
  }

  #conclude(): void {
    const { exchange, recorder } = this.#options;
    const { response, state } = exchange;
    const failure = state.step === "failed" ? state.failure.message : undefined;
    if (this.#trailers === undefined) this.#recordTrailers(response?.trailers);
    const trailers = this.#trailers;
    const status = readStatus(trailers ?? []) ?? readStatus(response?.fields ?? []);
    const type = fieldValue(response?.fields ?? [], "content-type");
    const isForeign = status === undefined && failure === undefined && parseCallForm(type) === undefined;
    const foreign = isForeign ? response : undefined;
    if (foreign !== undefined) this.#issue(`response: HTTP ${foreign.status} with ${shownType(type)} is no gRPC`);
    const hasNoStatus =
      status === undefined && failure === undefined && response !== undefined && foreign === undefined;
    if (hasNoStatus && this.#issues.length === 0) this.#issue("response: ended without trailers, so without a status");
    const code = foreign === undefined ? status?.code : statusOfHttp(foreign.status);
    const attributes: Record<string, string> = {};
    if (code !== undefined) attributes["status"] = String(code);
    if (status?.details !== undefined) attributes["details"] = status.details.toString("base64");
    if (failure !== undefined) attributes["failure"] = failure;
    if (this.#issues.length > 0) attributes["issues"] = JSON.stringify(this.#issues);
    recorder.change({
      attributes,
      ...(code === undefined ? {} : { closeCode: code }),
      ...(status === undefined ? {} : { closeReason: status.message }),
    });
    recorder.end();
  }

  /** HTTP trailers are recorded among the messages, as gRPC-Web sends them. */
  #recordTrailers(fields: readonly string[] | undefined): void {
    if (fields === undefined || fields.length === 0) return;
    const lines: string[] = [];
    for (let at = 0; at + 1 < fields.length; at += 2) lines.push(`${fields[at]?.toLowerCase()}: ${fields[at + 1]}\r\n`);
    const payload = Buffer.from(lines.join(""), "latin1");
    this.#options.recorder.frame({
      direction: "receive",
      type: "trailer",
      opcode: 0,
      isFinal: true,
      atMs: this.#options.now(),
      payload,
      sizeBytes: payload.length,
      wireBytes: payload.length,
      isCompressed: false,
    });
    this.#noteTrailers(fields, payload.length);
  }

  /** Trailers count as a frame; this attribute tells them from messages. */
  #noteTrailers(fields: readonly string[], sizeBytes: number): void {
    this.#trailers = fields;
    const attributes = { trailers: JSON.stringify(fields), trailer_bytes: String(sizeBytes) };
    this.#options.recorder.change({ attributes });
  }
}

/** A media type without parameters, for sentences. */
function shownType(contentType: string | undefined): string {
  const [type = ""] = (contentType ?? "").slice(0, MAX_TYPE_LENGTH).split(";", 1);
  return type.trim() === "" ? "no media type" : type.trim();
}
