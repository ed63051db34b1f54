import type { IncomingMessage, ServerResponse } from "node:http";
import { gzipSync } from "node:zlib";
import { proxyClient, startOrigin } from "@headworks/testkit";
import type { ProxiedRequest } from "@headworks/testkit";
import { generatedRow, seededRandom } from "./generated-traffic.ts";
import type { RunningWeir } from "./running-weir.ts";

const ROWS = 60;

/** A realistic JWT; its signature is no secret and signs nothing. */
const TOKEN = `${base64url({ alg: "HS256", typ: "JWT" })}.${base64url({ sub: "ada", exp: 1_900_000_000 })}.c2lnbmF0dXJl`;

const ORDERS = {
  page: 1,
  orders: Array.from({ length: 40 }, (_, index) => ({
    id: `ord_${index}`,
    status: index % 3 === 0 ? "paid" : "open",
    total: 12.5 * index,
    note: index % 4 === 0 ? null : "Leave it with the neighbour, please; the bell is broken and nobody will hear it",
    paid: index % 3 === 0,
  })),
};
const PAGE = `<!doctype html><html lang="en"><head><title>Shop</title><style>h1{color:teal}</style></head><body><h1>Shop</h1>${"<p>Lamps, bulbs and shades.</p>".repeat(12)}</body></html>`;
const PICTURE = `<svg xmlns="http://www.w3.org/2000/svg" width="320" height="200"><rect width="320" height="200" fill="#0b6b7d"/><circle cx="160" cy="100" r="70" fill="#ffd43b"/></svg>`;

const FILES: Readonly<Record<string, readonly [status: number, type: string, body: string | Buffer]>> = {
  "/api/orders": [200, "application/json", JSON.stringify(ORDERS)],
  "/page": [200, "text/html; charset=utf-8", PAGE],
  "/lamp.svg": [200, "image/svg+xml", PICTURE],
  "/bytes": [200, "application/octet-stream", Buffer.from(Array.from({ length: 2048 }, (_, index) => index % 256))],
  "/broken.json": [500, "application/json", '{"error": "out of lamps", }'],
  "/empty": [204, "text/plain", ""],
};

function serve(request: IncomingMessage, response: ServerResponse): void {
  const path = (request.url ?? "/").split("?")[0] ?? "/";
  const [status, type, body] = FILES[path] ?? [200, "text/plain", "thank you"];
  request.resume().once("end", () => {
    if (path === "/reset") {
      response.destroy();
      return;
    }
    response.setHeader("content-type", type);
    response.setHeader("set-cookie", ["basket=42; Path=/; HttpOnly; SameSite=Lax", "theme=dark; Max-Age=31536000"]);
    response.setHeader("cache-control", "no-store");
    if (type === "application/json") response.setHeader("content-encoding", "gzip");
    response.writeHead(status).end(type === "application/json" ? gzipSync(body) : body);
  });
}

const part = (head: string, text: string): string =>
  `--cut\r\nContent-Disposition: form-data; ${head}\r\n\r\n${text}\r\n`;

const REQUESTS: readonly ProxiedRequest[] = [
  { url: "/page" },
  { url: "/lamp.svg" },
  { url: "/bytes" },
  { url: "/broken.json" },
  { url: "/empty" },
  { url: "/reset" },
  {
    method: "POST",
    url: "/form",
    headers: [["Content-Type", "application/x-www-form-urlencoded"]],
    body: "name=Ada+Okafor&street=Quay+Street+4&note=%3Cb%3Eno+bell%3C%2Fb%3E",
  },
  {
    method: "POST",
    url: "/parts",
    headers: [["Content-Type", "multipart/form-data; boundary=cut"]],
    body: `${part('name="who"', "Ada")}${part('name="file"; filename="list.txt"', "two lamps\r\nfour bulbs")}--cut--\r\n`,
  },
  {
    url: `/api/orders?page=1&sort=total&filter=${"long".repeat(30)}`,
    headers: [
      ["Authorization", `Bearer ${TOKEN}`],
      ["Cookie", "basket=42; seen=yes"],
      ["Accept", "application/json, text/plain;q=0.8"],
    ],
  },
];

/** Fills a Weir with examples of everything that the screens show: imported rows, and live ones with each kind of body. */
export async function fillWithTraffic(weir: RunningWeir): Promise<void> {
  await weir.call("POST", "/traffic/import/har?session_name=Checkout", generatedHar());
  const sessions = (await weir.call("GET", "/sessions")) as readonly { readonly id: string; readonly name: string }[];
  const imported = sessions.find((session) => session.name === "Checkout");
  if (imported === undefined) throw new Error("The import made no session");
  await weir.call("POST", `/sessions/${imported.id}/switch`);
  await using origin = await startOrigin({ handler: serve });
  const client = proxyClient(weir.proxyPort);
  for (const each of REQUESTS) {
    // The reset connection is one of the examples.
    await client.fetch({ ...each, url: origin.url + each.url }).catch(() => undefined);
  }
  await weir.call("POST", "/sessions", { name: "Login flow before the fix" });
  await weir.call("POST", "/sessions", {});
  await weir.call("PATCH", `/sessions/${imported.id}`, { notes: "Taken on the staging machine", tags: ["checkout"] });
  for (const [pattern, note] of [
    ["*.telemetry.example", "Metrics drown everything else"],
    ["ads.example", null],
  ]) {
    await weir.call("POST", "/blocklist", { pattern, ...(note !== null && { note }) });
  }
  for (const pattern of ["*.shop.example", "127.0.0.1"]) await weir.call("POST", "/focus", { pattern });
}

function generatedHar(): string {
  const random = seededRandom(7);
  const startMs = Date.now() - ROWS * 400;
  const entries = Array.from({ length: ROWS }, (_, seq) => {
    const row = generatedRow(random, seq, startMs, "");
    const durationMs = row.duration_ms ?? 20;
    return {
      startedDateTime: new Date(startMs + seq * 400).toISOString(),
      time: durationMs,
      request: { method: row.method, url: row.url, httpVersion: "HTTP/1.1", headers: [], queryString: [], cookies: [] },
      response: {
        status: row.status_code ?? 200,
        statusText: "",
        httpVersion: "HTTP/1.1",
        headers: [{ name: "Content-Type", value: row.response_content_type ?? "text/plain" }],
        cookies: [],
        content: { size: 0, mimeType: row.response_content_type ?? "text/plain", text: "x".repeat((seq * 397) % 9000) },
        redirectURL: "",
      },
      cache: {},
      timings: { send: 1, wait: durationMs * 0.7, receive: durationMs * 0.3 },
    };
  });
  return JSON.stringify({ log: { version: "1.2", creator: { name: "screens", version: "1" }, entries } });
}

function base64url(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}
