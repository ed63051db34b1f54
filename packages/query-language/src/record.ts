/** The direction of a stream message: from the server or from the client. */
export type Direction = "in" | "out";

/** The state of an exchange: in progress, completed, or ended without a usable response. */
export type RecordState = "pending" | "complete" | "failed" | "closed";

/**
 * What a query sees of one captured exchange. Plain properties are cheap facts that a store keeps in columns;
 * methods stand for material that has to be fetched or decoded and are called only when the query asks for it. What is
 * known of streams is left out by a source that knows nothing of them, and only read when the query asks for it.
 */
export interface QueryRecord {
  readonly id: string;
  /** Position in the order of capture, when the store numbers its entries. */
  readonly seq?: number | undefined;
  readonly sessionId: string;
  /** Method token as sent. */
  readonly method: string;
  /** `http`, `https`, `ws`, `wss`. */
  readonly scheme: string;
  /** Host without port, as sent. */
  readonly host: string;
  /** Effective port, the scheme's default included. */
  readonly port: number;
  /** Path without query. */
  readonly path: string;
  /** Query without the leading `?`, empty when there is none. */
  readonly query: string;
  /** The full URL as shown to users. */
  readonly url: string;
  /** Undefined until a response head has arrived. */
  readonly status: number | undefined;
  /** `HTTP/1.1`, `HTTP/2`, `SOCKS5`. */
  readonly httpVersion: string | undefined;
  /** Media type of the request body without parameters. */
  readonly requestType: string | undefined;
  /** Media type of the response body without parameters. */
  readonly responseType: string | undefined;
  /** Coarse kind of resource: `document`, `script`, `image`, `websocket`, `tunnel` and so on. */
  readonly resourceType: string | undefined;
  readonly requestSizeBytes: number;
  readonly responseSizeBytes: number | undefined;
  readonly durationMs: number | undefined;
  /** Time to the first byte of the response. */
  readonly ttfbMs: number | undefined;
  /** Start of the exchange, milliseconds since 1970. */
  readonly timestampMs: number;
  /** `ip:port` of the client. */
  readonly clientAddress: string | undefined;
  readonly state: RecordState;
  readonly isPassthrough: boolean;
  readonly modified: boolean;
  /** Kinds of the rules that touched it: `rewrite`, `mock` and so on. */
  readonly applied: readonly string[];
  readonly note: string | undefined;
  /** Whether the request had a body, of whatever kind, stored or not. */
  readonly hasRequestBody: boolean;
  /** Whether the response had a body, of whatever kind, stored or not. */
  readonly hasResponseBody: boolean;
  /** How a gRPC call ended, by number; undefined while it runs and for everything else. */
  readonly grpcStatus?: number | undefined;
  /** `in` when a message of its stream came from the server. */
  readonly incoming?: "in" | undefined;
  /** `out` when a message of its stream came from the client. */
  readonly outgoing?: "out" | undefined;
  /** How many messages of a WebSocket connection are stored; undefined when there is none. */
  readonly webSocketMessages?: number | undefined;
  /** Request header fields as a flat list: name, value, name, value. */
  requestFields(): readonly string[];
  /** Response header fields as a flat list; empty while there is no response. */
  responseFields(): readonly string[];
  /** Decoded text of the request body as far as it is to be searched; undefined when there is none or it is not text. */
  requestText(): string | undefined;
  /** Decoded text of the response body as far as it is to be searched; undefined when there is none or it is not text. */
  responseText(): string | undefined;
  /** Texts of the stored messages of a WebSocket connection that went one of these ways, in any order. */
  webSocketTexts?(directions: readonly Direction[]): Iterable<string>;
}
