/** The work of the load client. */
export interface LoadJob {
  readonly proxyPort: number;
  readonly scheme: "http" | "https";
  /** Plain requests inside a SOCKS5 tunnel, in origin form. */
  readonly bySocks5?: boolean;
  /** The protocol inside TLS, by default HTTP/1.1. For WebSocket a message and its echo count as a request. */
  readonly inside?: "http2" | "websocket" | undefined;
  readonly originHost: string;
  readonly originPort: number;
  readonly bodyBytes: number;
  readonly connections: number;
  /** A new connection for each request (TCP, CONNECT, TLS without resumption) instead of kept ones. */
  readonly isNewConnectionEach: boolean;
  /** The proxy's CA, PEM. */
  readonly caPem: string;
  /** A change of the proxy in each body; both texts have the same length. */
  readonly edit?: BodyEdit | undefined;
}

/** A text that the proxy replaces in each body by another one of the same length. */
export interface BodyEdit {
  readonly from: string;
  readonly to: string;
}
