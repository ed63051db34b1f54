/** One kind of traffic. */
export interface Row {
  readonly name: string;
  readonly title: string;
  readonly scheme: "http" | "https";
  readonly bodyBytes: number;
  readonly isNewConnectionEach: boolean;
  /** The protocol inside TLS, by default HTTP/1.1. Contenders without support are omitted. */
  readonly inside?: "http2" | "websocket";
  /** The proxy protocol, by default HTTP. Contenders without SOCKS5 support are omitted. */
  readonly by?: "socks5";
  /**
   * By contender: the required minimum of its CPU per request as a multiple of Weir's, and the aim. Other contenders
   * are measured without a target.
   */
  readonly targets: Readonly<Record<string, { readonly floor: number; readonly aim: number }>>;
}

const kept = { isNewConnectionEach: false } as const;

export const ROWS: readonly Row[] = [
  {
    ...kept,
    name: "https-2k",
    title: "HTTPS inside CONNECT, connections kept, 2 KB",
    scheme: "https",
    bodyBytes: 2048,
    targets: {
      mitmdump: { floor: 15, aim: 20 },
      mockttp: { floor: 5, aim: 7 },
      anyproxy: { floor: 5, aim: 7 },
      "http-mitm-proxy": { floor: 2.5, aim: 3.5 },
    },
  },
  {
    ...kept,
    name: "https-100k",
    title: "HTTPS inside CONNECT, connections kept, 100 KB",
    scheme: "https",
    bodyBytes: 102_400,
    targets: {},
  },
  {
    ...kept,
    name: "http-2k",
    title: "plain HTTP, connections kept, 2 KB",
    scheme: "http",
    bodyBytes: 2048,
    targets: {},
  },
  {
    ...kept,
    name: "http-100k",
    title: "plain HTTP, connections kept, 100 KB",
    scheme: "http",
    bodyBytes: 102_400,
    targets: {},
  },
  {
    name: "new-tls",
    title: "new intercepted connection each: CONNECT, TLS, one request of 2 KB",
    scheme: "https",
    bodyBytes: 2048,
    isNewConnectionEach: true,
    targets: {
      mitmdump: { floor: 6, aim: 8 },
      mockttp: { floor: 3.5, aim: 4.5 },
      "http-mitm-proxy": { floor: 1.6, aim: 2 },
    },
  },
  {
    ...kept,
    name: "http2-2k",
    title: "HTTP/2 on both sides inside CONNECT, connections kept, 2 KB",
    scheme: "https",
    inside: "http2",
    bodyBytes: 2048,
    targets: { mitmdump: { floor: 8, aim: 12 }, mockttp: { floor: 3, aim: 5 } },
  },
  {
    ...kept,
    name: "websocket-200",
    title: "WebSocket inside TLS, a message of 200 bytes and its echo",
    scheme: "https",
    inside: "websocket",
    bodyBytes: 200,
    targets: { mitmdump: { floor: 8, aim: 12 }, mockttp: { floor: 3, aim: 5 } },
  },
  {
    name: "new-socks5",
    title: "new SOCKS5 connection each, one plain request of 2 KB inside (a tunnel in Weir, intercepted by the others)",
    scheme: "http",
    by: "socks5",
    bodyBytes: 2048,
    isNewConnectionEach: true,
    targets: { mitmdump: { floor: 8, aim: 10 }, mockttp: { floor: 3, aim: 4 } },
  },
];
