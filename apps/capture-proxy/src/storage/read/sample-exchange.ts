import { type FieldLines, Http1Error, requestHeadText } from "@headworks/http1";
import { BodyCapture, type BodySpool } from "#exchange/body.ts";
import type { ClientFacts, Exchange, RequestMessage, ResponseMessage } from "#exchange/exchange.ts";
import type { FrameRecord } from "../streams/stream-store.ts";

/** Every option has a default. */
export interface SampleOptions {
  readonly client?: Pick<ClientFacts, "address" | "connection" | "session">;
  readonly id?: string;
  readonly method?: string;
  readonly scheme?: Exchange["request"]["scheme"];
  readonly host?: string;
  readonly port?: number;
  readonly path?: string;
  readonly status?: number;
  readonly startedAtMs?: number;
  readonly durationMs?: number;
  readonly requestFields?: string[];
  readonly responseFields?: string[];
  /** False: fields as HTTP/2 delivers them. Default true where they could come from HTTP/1.1 lines. */
  readonly hasFieldLines?: boolean;
  readonly requestBody?: readonly (string | Uint8Array)[];
  readonly responseBody?: readonly (string | Uint8Array)[];
  readonly limitBytes?: number;
  /** For large bodies; without it they are not stored. */
  readonly spool?: BodySpool | undefined;
  readonly state?: Exchange["state"];
  readonly trace?: Exchange["trace"];
  readonly originalRequest?: Exchange["originalRequest"];
  readonly originalResponse?: Exchange["originalResponse"];
}

const CLIENT = { address: "127.0.0.1:50000", connection: 7 };

function effectsOf({ trace, originalRequest, originalResponse }: SampleOptions) {
  const modified = originalRequest !== undefined || originalResponse !== undefined;
  return { trace, originalRequest, originalResponse, modified, pace: undefined, ...UNCHANGEABLE };
}

function refuse(): never {
  throw new TypeError("This exchange is over");
}

/** A finished exchange cannot be changed. */
const UNCHANGEABLE = {
  requestHasBody: false,
  addTrace: refuse,
  changeRequest: refuse,
  changeResponse: refuse,
  requestContent: refuse,
  responseContent: refuse,
  setRequestContent: refuse,
  setResponseContent: refuse,
  filterBody: refuse,
};

let serial = 0;
const FIRST_LINE = "GET / HTTP/1.1\r\n";

/** Field lines as HTTP/1.1 would receive them; undefined if impossible. */
function linesOf(fields: readonly string[]): FieldLines {
  if (fields.some((text) => /[\0-\x08\x0b-\x1f\x7f]|^[ \t]|[ \t]$/.test(text))) return undefined;
  try {
    return requestHeadText("GET", "/", [...fields]).slice(FIRST_LINE.length, -2);
  } catch (error) {
    if (error instanceof Http1Error) return undefined;
    throw error;
  }
}

/** A finished exchange as the data path would record it. */
export function sampleExchange(options: SampleOptions = {}): Exchange {
  serial += 1;
  const state = options.state ?? { step: "completed" };
  const isFinished = state.step === "completed" || state.step === "failed";
  const hasResponse = state.step === "completed" || state.step === "responding";
  const requestBody = filled(options.requestBody ?? [], options);
  const responseBody = filled(options.responseBody ?? [], options);
  if (isFinished) {
    requestBody.end();
    responseBody.end();
  }
  const duration = options.durationMs ?? 12.5;
  return {
    id:
      options.id ??
      `0193${(Date.now() % 0xffff).toString(16).padStart(4, "0")}-0000-7000-8000-${serial.toString(16).padStart(12, "0")}`,
    startedAtMs: options.startedAtMs ?? 1_763_700_000_000 + serial,
    client: { ...CLIENT, ...options.client, sni: undefined, tls: undefined },
    request: requestOf(options),
    response: hasResponse ? responseOf(options) : undefined,
    requestBody,
    responseBody,
    moments: {
      started: 1000,
      requestEnded: 1001,
      resolveStarted: 0,
      connectStarted: 0,
      tunnelStarted: 0,
      tlsStarted: 0,
      upstreamReady: 0,
      sendStarted: 1001,
      sendEnded: 1001.5,
      firstByte: hasResponse ? 1000 + duration * 0.75 : 0,
      ended: isFinished ? 1000 + duration : 0,
    },
    state,
    source: "upstream",
    passthrough: false,
    serverAddress: "192.0.2.1:443",
    upstreamTls: undefined,
    isRecorded: true,
    ...effectsOf(options),
  };
}

function requestOf(options: SampleOptions): RequestMessage {
  const fields = options.requestFields ?? ["Host", options.host ?? "example.com", "Accept", "*/*"];
  return {
    method: options.method ?? "GET",
    scheme: options.scheme ?? "https",
    host: options.host ?? "example.com",
    port: options.port ?? 443,
    path: options.path ?? "/items?page=1",
    version: "HTTP/1.1",
    fields,
    fieldLines: hasLines(options) ? linesOf(fields) : undefined,
    trailers: undefined,
  };
}

function responseOf(options: SampleOptions): ResponseMessage {
  const plain = ["Content-Type", "text/plain; charset=utf-8", "X-Order", "1", "x-order", "2"];
  const fields = options.responseFields ?? plain;
  return {
    status: options.status ?? 200,
    reason: "OK",
    version: "HTTP/1.1",
    fields,
    fieldLines: hasLines(options) ? linesOf(fields) : undefined,
    trailers: undefined,
  };
}

function hasLines({ hasFieldLines = true, originalRequest, originalResponse }: SampleOptions): boolean {
  return hasFieldLines && originalRequest === undefined && originalResponse === undefined;
}

function filled(pieces: readonly (string | Uint8Array)[], options: SampleOptions): BodyCapture {
  const body = new BodyCapture(options.limitBytes ?? 20_971_520, options.spool);
  for (const piece of pieces) body.add(Buffer.from(piece));
  return body;
}

/** A masked text frame from the client, for tests. */
export function sampleFrame(text: string | Buffer, change: Partial<FrameRecord> = {}): FrameRecord {
  const payload = Buffer.from(text);
  return {
    direction: "send",
    type: "text",
    opcode: 1,
    isFinal: true,
    atMs: 1_763_700_000_000,
    payload,
    sizeBytes: payload.length,
    wireBytes: payload.length + 6,
    isCompressed: false,
    ...change,
  };
}
