import { createRequire } from "node:module";

/** One message as Node's own parser reads it. */
export interface OracleMessage {
  method: string | undefined;
  target: string | undefined;
  status: number | undefined;
  version: string;
  fields: string[];
  body: string;
  trailers: string[];
  keepAlive: boolean;
  ended: boolean;
}

export interface OracleReading {
  readonly messages: OracleMessage[];
  /** llhttp's name for the error, or undefined. */
  error: string | undefined;
}

interface NativeParser {
  [callback: number]: unknown;
  initialize(kind: number, resource: object, maxHeaderBytes?: number): void;
  execute(chunk: Buffer): number | (Error & { code?: string });
  finish(): undefined | (Error & { code?: string });
}

interface NativeModule {
  readonly methods: readonly string[];
  readonly HTTPParser: {
    new (): NativeParser;
    readonly REQUEST: number;
    readonly RESPONSE: number;
    readonly kOnHeaders: number;
    readonly kOnHeadersComplete: number;
    readonly kOnBody: number;
    readonly kOnMessageComplete: number;
  };
}

const native = createRequire(import.meta.url)("_http_common") as NativeModule;

/** The methods supported by Node's parser; it refuses all others. */
export const ORACLE_METHODS: readonly string[] = native.methods;

/** Reads requests, or responses to a request that allows a body, in strict mode. */
export function readWithOracle(kind: "request" | "response", pieces: readonly Buffer[], end = false): OracleReading {
  const { HTTPParser, methods } = native;
  const parser = new HTTPParser();
  const reading: OracleReading = { messages: [], error: undefined };
  let pendingFields: string[] = [];
  parser.initialize(kind === "request" ? HTTPParser.REQUEST : HTTPParser.RESPONSE, {}, 1 << 20);
  let pendingTarget = "";
  parser[HTTPParser.kOnHeaders] = (fields: string[], target: string) => {
    pendingFields.push(...fields);
    pendingTarget += target;
  };
  parser[HTTPParser.kOnHeadersComplete] = (
    major: number,
    minor: number,
    fields: string[] | undefined,
    method: number | undefined,
    target: string | undefined,
    status: number | undefined,
    _reason: string | undefined,
    _upgrade: boolean,
    keepAlive: boolean,
  ) => {
    reading.messages.push({
      method: method === undefined ? undefined : methods[method],
      // After trailers the parser delivers even a small head in parts.
      target: target ?? pendingTarget,
      status,
      version: `${major}.${minor}`,
      fields: [...pendingFields, ...(fields ?? [])],
      body: "",
      trailers: [],
      keepAlive,
      ended: false,
    });
    pendingFields = [];
    pendingTarget = "";
    return 0;
  };
  parser[HTTPParser.kOnBody] = (data: Buffer) => {
    const message = reading.messages.at(-1);
    if (message !== undefined) message.body += data.toString("latin1");
  };
  parser[HTTPParser.kOnMessageComplete] = () => {
    const message = reading.messages.at(-1);
    if (message === undefined) return;
    message.trailers = pendingFields;
    message.ended = true;
    pendingFields = [];
    pendingTarget = "";
  };
  for (const piece of pieces) {
    const result = parser.execute(piece);
    if (typeof result === "number") continue;
    reading.error = result.code ?? "unknown";
    return reading;
  }
  if (end) reading.error = parser.finish()?.code;
  return reading;
}
