/**
 * The API of Weir's scripts. A script declares one function for each hook that it uses. A hook that returns nothing lets
 * the message go on, with the changes made to it. Hooks may be `async`.
 *
 * Scripts run in an interpreter of their own: there are no files, no network, no timers and no modules. Variables of the
 * top level keep their values between calls, until the script changes or its interpreter is restarted after a failure.
 */

/** The header fields of a message. Names are case-insensitive; order and repeated fields are kept. */
interface Headers {
  /** `headers["Accept"]` is the value, `headers["Accept"] = "…"` sets it, `delete headers["Accept"]` removes it. */
  [name: string]: any;
  /** All values of the name, joined by commas; undefined if there is none. */
  get(name: string): string | undefined;
  /** The value of each field of the name. */
  getAll(name: string): string[];
  has(name: string): boolean;
  /** Replaces all fields of the name; an array sets one field for each value. */
  set(name: string, value: string | string[]): void;
  /** Adds a field. */
  append(name: string, value: string): void;
  /** Removes all fields of the name. */
  delete(name: string): boolean;
  /** The names as received. */
  keys(): string[];
  /** Every field as name and value. */
  entries(): [string, string][];
  forEach(run: (value: string, name: string) => void): void;
  [Symbol.iterator](): Iterator<[string, string]>;
  toJSON(): Record<string, string>;
}

/** The parts that requests and responses share. */
interface Message {
  readonly headers: Headers;
  /** The text without content coding, null for binary content. Set it to text or bytes. */
  body: string | Uint8Array | null;
  /** The bytes without content coding. */
  bytes: Uint8Array;
  /** The value of Content-Type. */
  contentType: string | null;
  /** The body parsed as JSON. Throws a SyntaxError for other bodies. */
  json(): any;
  /** Replaces the body by JSON text. */
  setJson(value: any): void;
  toJSON(): object;
}

interface Request extends Message {
  method: string;
  /** The absolute URL. A new host, port or scheme changes where the request is sent. */
  url: string;
  readonly scheme: string;
  /** Without port. */
  host: string;
  port: number;
  /** Without query. */
  path: string;
  /** The parameters of the query, decoded; an array for a repeated name. Changes of it change the URL. */
  query: Record<string, string | string[]>;
}

interface Response extends Message {
  /** Between 200 and 599. */
  statusCode: number;
  statusMessage: string;
  /** Milliseconds from the request to the head of the response. */
  readonly durationMs: number;
}

interface Context {
  /** The id of the captured entry. */
  readonly requestId: string;
  readonly sessionId: string;
  /** `on_request` and so on. */
  readonly hook: string;
  /** Values that the hooks of one exchange share, of all scripts: plain JSON. */
  data: Record<string, any>;
}

interface WebSocketContext extends Context {
  readonly connection_id: string;
  /** `send` is from the client. */
  readonly direction: "send" | "receive";
  readonly message_type: "text" | "binary";
  readonly is_binary: boolean;
  /** Set it to change the message. */
  payload: string | Uint8Array;
  /** The request that opened the connection. */
  readonly request: Request;
}

interface GrpcContext extends Context {
  readonly stream_id: string;
  readonly service: string;
  readonly method: string;
  /** `send` is from the client. */
  readonly direction: "send" | "receive";
  /** The message in the protobuf format, uncompressed. Set it to other bytes to change the message. */
  message: Uint8Array;
  readonly request: Request;
}

/** An entry as it is about to be stored. Changes affect what is stored, not what was sent. */
interface StoredEntry {
  readonly id: string;
  readonly request: Request;
  /** Null without a response. */
  readonly response: Response | null;
  /** A note for the entry. */
  notes: string | null;
  /** Added to the note, as `#tag`. */
  tags: string[];
}

interface StoreContext extends Context {
  readonly entry: StoredEntry;
}

interface SessionContext extends Context {
  readonly session: { readonly id: string; readonly name: string | null };
}

interface OwnResponse {
  /** Default: 200. */
  statusCode?: number;
  statusMessage?: string;
  headers?: Record<string, string | string[]>;
  /** An object becomes JSON. */
  body?: string | Uint8Array | object;
}

interface Result {
  /**
   * False stops: with `response` the client gets it; without, the exchange is cut off, the message dropped, or the entry
   * not stored.
   */
  continue?: boolean;
  response?: OwnResponse;
  /** Cut off by closing the connection instead of with an error page. */
  close?: boolean;
  /** Milliseconds to wait before the message goes on, up to 60,000. */
  delay?: number;
}

type Returned = void | undefined | null | boolean | Result;

declare function onRequest(request: Request, context: Context): Returned | Promise<Returned>;
declare function onResponse(request: Request, response: Response, context: Context): Returned | Promise<Returned>;
declare function onWebSocketMessage(context: WebSocketContext): Returned | Promise<Returned>;
declare function onGrpcMessage(context: GrpcContext): Returned | Promise<Returned>;
declare function onTrafficStore(context: StoreContext): Returned | Promise<Returned>;
declare function onSessionStart(context: SessionContext): void | Promise<void>;
declare function onSessionEnd(context: SessionContext): void | Promise<void>;

/** Lines are kept with the execution, up to 200 lines and 64 KiB for each call. */
declare const console: {
  log(...values: any[]): void;
  info(...values: any[]): void;
  warn(...values: any[]): void;
  error(...values: any[]): void;
  debug(...values: any[]): void;
};

/** Values that survive restarts, for this script alone: JSON, up to 1 MiB. */
declare const store: {
  get(key: string): any;
  set(key: string, value: any): void;
  delete(key: string): void;
  keys(): string[];
};

declare const base64: {
  encode(value: string | Uint8Array): string;
  /** As text. */
  decode(text: string): string;
  decodeBytes(text: string): Uint8Array;
};

declare const crypto: {
  /** In hexadecimal digits. `algorithm`: sha256 (default), sha1, sha384, sha512, md5. */
  hash(value: string | Uint8Array, algorithm?: string): string;
  hmac(key: string | Uint8Array, value: string | Uint8Array, algorithm?: string): string;
  randomUUID(): string;
};

interface ParsedUrl {
  scheme: string;
  host: string;
  port: number | null;
  path: string;
  query: Record<string, string | string[]>;
}

declare const url: {
  parse(url: string): ParsedUrl;
  build(parts: {
    scheme?: string;
    host: string;
    port?: number | null;
    path?: string;
    query?: string | Record<string, any>;
  }): string;
};
