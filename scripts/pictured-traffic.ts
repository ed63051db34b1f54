/** One exchange of the pictures; opened ones have bodies. */
interface Exchange {
  readonly method?: string;
  readonly url: string;
  readonly status: number;
  readonly type: string;
  readonly sizeBytes: number;
  readonly waitMs: number;
  readonly body?: unknown;
  readonly sent?: unknown;
}

const SHOP = "https://www.shop.example";
const API = "https://api.shop.example";
const CDN = "https://cdn.shop.example";

const ORDER = {
  order_id: "ord_7Qm2vX",
  status: "awaiting_payment",
  currency: "EUR",
  total: 86.4,
  customer: { id: 4711, name: "Ada Okafor", email: "ada@mail.example", newsletter: false },
  items: [
    { sku: "LMP-204", title: "Desk lamp, brass", quantity: 1, price: 59.9, in_stock: true },
    { sku: "BLB-011", title: "Light bulb E27, warm", quantity: 3, price: 6.5, in_stock: true },
    { sku: "SHP-STD", title: "Standard delivery", quantity: 1, price: 7, in_stock: true },
  ],
  shipping: {
    method: "standard",
    address: { street: "Quay Street 4", city: "Galway", country: "IE" },
    eta_days: [2, 4],
  },
  created_at: "2026-05-04T09:12:44.120Z",
};

const EXCHANGES: readonly Exchange[] = [
  { url: `${SHOP}/`, status: 200, type: "text/html", sizeBytes: 48_211, waitMs: 92 },
  { url: `${CDN}/assets/main-4f1c09.css`, status: 200, type: "text/css", sizeBytes: 21_904, waitMs: 18 },
  { url: `${CDN}/assets/shop-9ab27e.js`, status: 200, type: "text/javascript", sizeBytes: 214_330, waitMs: 34 },
  { url: `${CDN}/fonts/inter-var.woff2`, status: 200, type: "font/woff2", sizeBytes: 98_868, waitMs: 22 },
  { url: `${CDN}/img/hero-spring.avif`, status: 200, type: "image/avif", sizeBytes: 143_007, waitMs: 41 },
  { url: `${CDN}/img/logo.svg`, status: 304, type: "image/svg+xml", sizeBytes: 0, waitMs: 9 },
  { url: `${API}/v2/session`, status: 200, type: "application/json", sizeBytes: 412, waitMs: 37 },
  {
    url: `${API}/v2/products?category=lighting&page=1&sort=popular`,
    status: 200,
    type: "application/json",
    sizeBytes: 18_442,
    waitMs: 128,
  },
  {
    method: "POST",
    url: "https://metrics.telemetry.example/v1/batch",
    status: 202,
    type: "application/json",
    sizeBytes: 17,
    waitMs: 64,
  },
  { url: `${CDN}/img/products/lamp-204@2x.webp`, status: 200, type: "image/webp", sizeBytes: 38_120, waitMs: 26 },
  { url: `${CDN}/img/products/bulb-011@2x.webp`, status: 200, type: "image/webp", sizeBytes: 24_018, waitMs: 24 },
  { url: `${CDN}/img/products/shade-077@2x.webp`, status: 404, type: "text/plain", sizeBytes: 19, waitMs: 15 },
  { url: `${API}/v2/products/LMP-204`, status: 200, type: "application/json", sizeBytes: 2_960, waitMs: 51 },
  {
    url: `${API}/v2/products/LMP-204/reviews?limit=20`,
    status: 200,
    type: "application/json",
    sizeBytes: 11_702,
    waitMs: 344,
  },
  {
    method: "PUT",
    url: `${API}/v2/basket/items/LMP-204`,
    status: 200,
    type: "application/json",
    sizeBytes: 684,
    waitMs: 47,
    sent: { quantity: 1 },
  },
  {
    method: "PUT",
    url: `${API}/v2/basket/items/BLB-011`,
    status: 200,
    type: "application/json",
    sizeBytes: 812,
    waitMs: 43,
    sent: { quantity: 3 },
  },
  {
    method: "DELETE",
    url: `${API}/v2/basket/items/CBL-300`,
    status: 204,
    type: "application/json",
    sizeBytes: 0,
    waitMs: 39,
  },
  {
    url: `${API}/v2/shipping/quotes?country=IE&weight_g=2140`,
    status: 503,
    type: "application/json",
    sizeBytes: 96,
    waitMs: 2_012,
  },
  {
    url: `${API}/v2/shipping/quotes?country=IE&weight_g=2140`,
    status: 200,
    type: "application/json",
    sizeBytes: 530,
    waitMs: 412,
  },
  {
    method: "POST",
    url: `${API}/graphql`,
    status: 200,
    type: "application/json",
    sizeBytes: 3_204,
    waitMs: 88,
    sent: { operationName: "Basket" },
  },
  {
    method: "POST",
    url: "https://metrics.telemetry.example/v1/batch",
    status: 202,
    type: "application/json",
    sizeBytes: 17,
    waitMs: 58,
  },
  {
    url: "https://maps.places.example/autocomplete?q=Quay+Str",
    status: 200,
    type: "application/json",
    sizeBytes: 1_877,
    waitMs: 133,
  },
  {
    method: "POST",
    url: `${API}/v2/discounts/validate`,
    status: 422,
    type: "application/json",
    sizeBytes: 118,
    waitMs: 55,
    sent: { code: "SPRING" },
  },
  {
    method: "POST",
    url: `${API}/v2/orders`,
    status: 201,
    type: "application/json",
    sizeBytes: 0,
    waitMs: 231,
    body: ORDER,
    sent: { basket: "bsk_19", payment: "card" },
  },
  {
    url: "https://pay.bank.example/3ds/challenge?order=ord_7Qm2vX",
    status: 302,
    type: "text/html",
    sizeBytes: 0,
    waitMs: 178,
  },
  {
    url: `${API}/v2/orders/ord_7Qm2vX/events`,
    status: 200,
    type: "text/event-stream",
    sizeBytes: 1_204,
    waitMs: 1_480,
  },
  { url: `${CDN}/assets/confetti-22d1.js`, status: 200, type: "text/javascript", sizeBytes: 9_312, waitMs: 21 },
  {
    url: `${API}/v2/recommendations?for=ord_7Qm2vX`,
    status: 200,
    type: "application/json",
    sizeBytes: 7_418,
    waitMs: 162,
  },
];

const fields = (record: Readonly<Record<string, string>>): { name: string; value: string }[] =>
  Object.entries(record).map(([name, value]) => ({ name, value }));

function harEntry(exchange: Exchange, startedMs: number): unknown {
  const { method = "GET", url, status, type, waitMs, sent } = exchange;
  const text = exchange.body === undefined ? filler(exchange) : JSON.stringify(exchange.body);
  const isNew = startedMs % 3 === 0;
  const timings = {
    blocked: 0.4,
    dns: isNew ? 6 : -1,
    connect: isNew ? 19 : -1,
    ssl: isNew ? 12 : -1,
    send: 0.3,
    wait: waitMs,
    receive: Math.max(1, Math.round(text.length / 4_000)),
  };
  const { hostname } = new URL(url);
  const postData = sent === undefined ? {} : { postData: { mimeType: "application/json", text: JSON.stringify(sent) } };
  return {
    startedDateTime: new Date(startedMs).toISOString(),
    time: Object.entries(timings).reduce((sum, [stage, ms]) => (stage === "ssl" ? sum : sum + Math.max(0, ms)), 0),
    request: {
      method,
      url,
      httpVersion: "HTTP/1.1",
      cookies: [],
      headers: fields({
        Host: hostname,
        "User-Agent": "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0",
        Accept: "*/*",
        ...(sent === undefined ? {} : { "Content-Type": "application/json" }),
        "Accept-Language": "en-IE, en;q=0.8",
      }),
      queryString: [...new URL(url).searchParams].map(([name, value]) => ({ name, value })),
      headersSize: -1,
      bodySize: sent === undefined ? 0 : JSON.stringify(sent).length,
      ...postData,
    },
    response: {
      status,
      statusText: "",
      httpVersion: "HTTP/1.1",
      cookies: [],
      headers: fields({
        "Content-Type": type,
        "Cache-Control": hostname.startsWith("cdn.") ? "public, max-age=31536000, immutable" : "no-store",
        "X-Request-Id": "b7c1f0de-4a52-4e0b",
      }),
      content: { size: text.length, mimeType: type, text },
      redirectURL: "",
      headersSize: -1,
      bodySize: text.length,
    },
    cache: {},
    timings,
  };
}

function filler({ type, sizeBytes }: Exchange): string {
  if (type !== "application/json" || sizeBytes === 0) return " ".repeat(sizeBytes);
  return JSON.stringify({ data: "x".repeat(Math.max(0, sizeBytes - 11)) });
}

/** A HAR document of a visit to a fictitious shop, ending at `endMs`. */
export function picturedTraffic(endMs: number): string {
  let atMs = endMs - 9_000;
  const entries = EXCHANGES.map((exchange, index) => {
    atMs += 40 + ((index * 73) % 310);
    return harEntry(exchange, atMs);
  });
  return JSON.stringify({ log: { version: "1.2", creator: { name: "take-pictures", version: "1" }, entries } });
}
