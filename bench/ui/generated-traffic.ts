import type { ResourceType, TrafficSnapshot } from "@headworks/capture-contract";

/** A small deterministic generator (mulberry32): the same seed gives the same traffic. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

interface Kind {
  readonly type: ResourceType;
  readonly mime: string;
  readonly hosts: readonly string[];
  readonly paths: readonly string[];
  readonly methods: readonly string[];
  readonly weight: number;
  readonly bytes: number;
}

const KINDS: readonly Kind[] = [
  {
    type: "json",
    mime: "application/json",
    hosts: ["api.shop.example", "api.shop.example", "auth.shop.example"],
    paths: [
      "/v2/orders?expand=items,payment",
      "/v2/cart",
      "/v2/customers/{n}/address",
      "/v2/recommendations?limit=24",
      "/v2/payments/poll",
      "/v2/events/batch",
      "/v2/coupons/WELCOME{n}",
    ],
    methods: ["GET", "GET", "POST", "PUT", "PATCH", "DELETE"],
    weight: 46,
    bytes: 6000,
  },
  {
    type: "image",
    mime: "image/webp",
    hosts: ["img.shop.example"],
    paths: ["/p/{n}/640.webp", "/p/{n}/1280.webp", "/banner/{n}.avif"],
    methods: ["GET"],
    weight: 22,
    bytes: 90_000,
  },
  {
    type: "script",
    mime: "text/javascript",
    hosts: ["cdn.shop.example"],
    paths: ["/assets/app.{n}.js", "/assets/vendor.{n}.js"],
    methods: ["GET"],
    weight: 9,
    bytes: 220_000,
  },
  {
    type: "document",
    mime: "text/html",
    hosts: ["shop.example", "www.shop.example"],
    paths: ["/", "/checkout", "/p/mug-{n}", "/search?q=mug+{n}"],
    methods: ["GET"],
    weight: 6,
    bytes: 21_000,
  },
  {
    type: "stylesheet",
    mime: "text/css",
    hosts: ["cdn.shop.example"],
    paths: ["/assets/app.{n}.css"],
    methods: ["GET"],
    weight: 4,
    bytes: 31_000,
  },
  {
    type: "font",
    mime: "font/woff2",
    hosts: ["fonts.example"],
    paths: ["/inter-var.woff2"],
    methods: ["GET"],
    weight: 2,
    bytes: 98_000,
  },
  {
    type: "websocket",
    mime: "",
    hosts: ["live.shop.example"],
    paths: ["/socket?room=checkout"],
    methods: ["GET"],
    weight: 1,
    bytes: 28_000,
  },
  {
    type: "event-stream",
    mime: "text/event-stream",
    hosts: ["chat.shop.example"],
    paths: ["/v1/assist/stream"],
    methods: ["POST"],
    weight: 1,
    bytes: 6000,
  },
  {
    type: "grpc",
    mime: "application/grpc",
    hosts: ["grpc.shop.example"],
    paths: ["/inventory.v1.Stock/Reserve", "/inventory.v1.Stock/Release"],
    methods: ["POST"],
    weight: 5,
    bytes: 96,
  },
  {
    type: "tunnel",
    mime: "",
    hosts: ["pinned.bank.example"],
    paths: [""],
    methods: ["CONNECT"],
    weight: 1,
    bytes: 41_000,
  },
  {
    type: "xml",
    mime: "application/xml",
    hosts: ["old.shop.example"],
    paths: ["/legacy/prices.xml"],
    methods: ["GET"],
    weight: 3,
    bytes: 2100,
  },
];
const TOTAL_WEIGHT = KINDS.reduce((sum, kind) => sum + kind.weight, 0);
const REASONS: Readonly<Record<number, string>> = {
  101: "Switching Protocols",
  200: "OK",
  201: "Created",
  204: "No Content",
  301: "Moved Permanently",
  304: "Not Modified",
  404: "Not Found",
  422: "Unprocessable Content",
  500: "Internal Server Error",
  502: "Bad Gateway",
};

function pick<T>(random: () => number, from: readonly T[]): T {
  const chosen = from[Math.floor(random() * from.length)];
  if (chosen === undefined) throw new RangeError("nothing to pick from");
  return chosen;
}

function pickKind(random: () => number): Kind {
  let at = random() * TOTAL_WEIGHT;
  for (const kind of KINDS) {
    at -= kind.weight;
    if (at < 0) return kind;
  }
  return pick(random, KINDS);
}

function pickStatus(random: () => number, kind: Kind): number {
  if (kind.type === "websocket") return 101;
  if (kind.type === "tunnel") return 200;
  const roll = random();
  if (roll > 0.995) return 502;
  if (roll > 0.985) return 500;
  if (roll > 0.965) return roll > 0.975 ? 404 : 422;
  if (roll > 0.92) return kind.type === "document" ? 301 : 304;
  return roll < 0.04 && kind.type === "json" ? 201 : 200;
}

/** One row that began at `startMs`; the random numbers determine the rest. */
export function generatedRow(random: () => number, seq: number, startMs: number, sessionId: string): TrafficSnapshot {
  const kind = pickKind(random);
  const host = pick(random, kind.hosts);
  const path = pick(random, kind.paths).replace("{n}", String(Math.floor(random() * 10_000)));
  const failed = random() > 0.994;
  const status = failed ? null : pickStatus(random, kind);
  const durationMs = (Math.round(Math.exp(2.5 + random() * 3.2) * 10) / 10) * (random() > 0.98 ? 12 : 1);
  const fresh = random() < 0.12;
  const connectMs = fresh ? durationMs * 0.15 : null;
  const wait = durationMs * (fresh ? 0.45 : 0.8);
  const url = kind.type === "tunnel" ? `tcp://${host}:443/` : `https://${host}${path}`;
  const size = status === 304 || status === 204 ? 0 : Math.round(kind.bytes * (0.3 + random() * 1.4));
  return {
    id: `00000000-0000-4000-8000-${seq.toString(16).padStart(12, "0")}`,
    seq,
    session_id: sessionId,
    state: failed ? "failed" : "complete",
    method: pick(random, kind.methods),
    url,
    scheme: kind.type === "tunnel" ? "tcp" : "https",
    host,
    path: kind.type === "tunnel" ? `${host}:443` : path,
    status_code: status,
    status_message: status === null ? null : (REASONS[status] ?? null),
    content_type: null,
    response_content_type: kind.mime === "" ? null : kind.mime,
    resource_type: kind.type,
    duration_ms: durationMs,
    ttfb_ms: failed ? null : durationMs - durationMs * 0.1,
    request_size: 400 + Math.floor(random() * 1800),
    response_size: failed ? null : size,
    timestamp: new Date(startMs).toISOString(),
    applied: [],
    modified: random() > 0.99,
    has_request_body: random() > 0.7,
    has_response_body: size > 0,
    is_passthrough: kind.type === "tunnel",
    http_version: random() > 0.3 ? "HTTP/1.1" : "HTTP/2",
    script_intercepted: false,
    device_id: null,
    client_addr: "127.0.0.1:50412",
    server_addr: "203.0.113.7:443",
    failure_code: failed ? "UPSTREAM_REFUSED" : null,
    source: random() > 0.99 ? "slice" : "upstream",
    has_note: random() > 0.995,
    timings: {
      blocked: 0.1,
      dns: fresh ? durationMs * 0.05 : null,
      connect: connectMs,
      tls: fresh ? durationMs * 0.25 : null,
      send: durationMs * 0.02,
      wait,
      receive: durationMs * 0.1,
    },
  };
}
