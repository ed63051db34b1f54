import type { IncomingMessage, ServerResponse } from "node:http";
import { gzipSync } from "node:zlib";

/** One white pixel. */
const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4////fwAJ+wP9CNHoHgAAAABJRU5ErkJggg==",
  "base64",
);

const ORDERS = [
  { id: 1, title: "Weir gate", price: 12.5, inStock: true },
  { id: 2, title: "Sluice gate", price: 8, inStock: false },
];

/** Captured HTML with every kind of script that a preview must not run. */
const HOSTILE_PAGE = `<!doctype html><title>shop</title><body onload="top.attacked = 1"><h1>Shop front</h1>
<script>top.attacked = 2; alert(2)</script><img src=x onerror="alert(3)"><svg onload="alert(4)"></svg>
<iframe srcdoc="<script>top.attacked = 5</script>"></iframe><meta http-equiv="refresh" content="0;url=/api/health">
<form action="/api/traffic"><button autofocus onfocus="alert(6)">Buy</button></form></body>`;

const FILES: Readonly<Record<string, readonly [status: number, type: string, body: string | Buffer]>> = {
  "/orders": [200, "application/json", JSON.stringify(ORDERS)],
  "/deep": [200, "application/json", JSON.stringify({ shop: { orders: ORDERS, note: "needle in the hay, Needle" } })],
  "/long": [200, "application/json", JSON.stringify(Array.from({ length: 1000 }, (_, index) => `value ${index}`))],
  "/page": [200, "text/html; charset=utf-8", HOSTILE_PAGE],
  "/dot.png": [200, "image/png", PNG],
  "/bytes": [200, "application/octet-stream", Buffer.from(Array.from({ length: 256 }, (_, index) => index))],
  "/style.css": [200, "text/css", "p{color:red}"],
  "/missing": [404, "text/plain", "not here"],
  "/broken": [500, "application/json", '{"error":"broken"}'],
};

/** The origin of the journeys: a small shop with gzip, and one error of each kind. */
export function site(request: IncomingMessage, response: ServerResponse): void {
  const path = (request.url ?? "/").split("?")[0] ?? "/";
  const [status, type, body] = FILES[path] ?? [200, "text/plain", `you asked for ${request.url ?? ""}`];
  request.resume().once("end", () => {
    if (path === "/reset") {
      response.destroy();
      return;
    }
    response.setHeader("content-type", type);
    response.setHeader("set-cookie", "basket=42; Path=/; HttpOnly; Secure; SameSite=None");
    if (typeof body === "string" && /json|html/u.test(type)) {
      response.setHeader("content-encoding", "gzip");
      response.writeHead(status).end(gzipSync(body));
    } else {
      response.writeHead(status).end(body);
    }
  });
}
