/** The work of the load client. */
export interface LoadJob {
  readonly proxyPort: number;
  readonly scheme: "http" | "https";
  /** Plain requests inside a SOCKS5 tunnel, as the origin is asked. */
  readonly bySocks5?: boolean;
  /** What is spoken inside TLS; HTTP/1.1 without. WebSocket: a message and its echo are a request. */
  readonly inside?: "http2" | "websocket" | undefined;
  readonly originHost: string;
  readonly originPort: number;
  readonly bodyBytes: number;
  readonly connections: number;
  /** Each request on a new connection (TCP, CONNECT, TLS without resumption) instead of kept ones. */
  readonly isNewConnectionEach: boolean;
  /** The proxy's CA, PEM. */
  readonly caPem: string;
  /** What the proxy is to change in every body; both texts have the same length. */
  readonly edit?: BodyEdit | undefined;
}

/** A text that the proxy replaces in every body by another one of the same length. */
export interface BodyEdit {
  readonly from: string;
  readonly to: string;
}
