import assert from "node:assert/strict";
import type { IncomingMessage, ServerResponse } from "node:http";
import { after, before, test } from "node:test";
import { peer, startOrigin } from "@headworks/testkit";
import type { Origin } from "@headworks/testkit";
import { chromium } from "playwright-core";
import { Cleanups, LOCAL_NAMES, originAuthority, startWeir } from "./rig.ts";
import type { Weir } from "./rig.ts";

const browser = peer("chromium");
const cleanups = new Cleanups();
let weir: Weir;
let site: Origin;
/** An API without CORS: it refuses OPTIONS. */
let api: Origin;

function response(request: IncomingMessage, response: ServerResponse): void {
  request.resume();
  if (request.method === "OPTIONS") return void response.writeHead(405).end();
  response.setHeader("X-Total", "3");
  return void response.end(`${request.method} ${request.headers.cookie ?? "no cookie"}`);
}

before(async () => {
  const tls = { authority: originAuthority, names: LOCAL_NAMES };
  weir = cleanups.use(await startWeir());
  site = cleanups.use(
    await startOrigin({ handler: (_request, response) => void response.end("<title>page</title>"), tls }),
  );
  api = cleanups.use(await startOrigin({ handler: response, tls }));
});
after(() => cleanups.run());

/** Requests as pages make them; each returns the body and a field, or the error. */
const CALLS: readonly (readonly [what: string, init: object])[] = [
  ["a simple GET", {}],
  ["JSON", { method: "POST", headers: { "content-type": "application/json" }, body: "{}" }],
  ["credentials", { credentials: "include" }],
  ["a field of its own", { method: "PUT", headers: { "x-mine": "1" }, credentials: "include" }],
];

test("with the CORS template, pages in Chromium can use an API of another origin", { skip: browser.skip }, async () => {
  const instance = await chromium.launch({
    executablePath: browser.path,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      `--proxy-server=${weir.proxyUrl}`,
      "--proxy-bypass-list=<-loopback>",
    ],
    timeout: 60_000,
  });
  try {
    const context = await instance.newContext({ ignoreHTTPSErrors: true });
    const cookie = { name: "id", value: "7", domain: "127.0.0.1", path: "/", secure: true, sameSite: "None" } as const;
    await context.addCookies([cookie]);
    const page = await context.newPage();
    await page.goto(`https://127.0.0.1:${site.port}/`);
    const results = async (): Promise<string[]> =>
      await page.evaluate(
        async ({ url, calls }) =>
          await Promise.all(
            calls.map(async (init) => {
              try {
                const response = await fetch(url, init);
                return `${await response.text()}, total ${response.headers.get("x-total")}`;
              } catch (error) {
                return String(error);
              }
            }),
          ),
        { url: `https://127.0.0.1:${api.port}/orders`, calls: CALLS.map(([, init]) => init) },
      );
    assert.ok(
      (await results()).every((text) => /Failed to fetch/.test(text)),
      "refused without a rule",
    );
    const templates = await weir.get<{ name: string; template: object }[]>("/rewrites/templates");
    const template = templates.find(({ name }) => name === "Add CORS Headers")?.template;
    const condition = { type: "host", pattern: "127.0.0.1" };
    const created = await fetch(`${weir.apiUrl}/api/rewrites`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ name: "CORS", condition, ...template }),
    });
    assert.ok(created.ok, await created.text());
    const expected = ["GET no cookie", "POST no cookie", "GET id=7", "PUT id=7"];
    assert.deepEqual(
      await results(),
      expected.map((body) => `${body}, total 3`),
    );
  } finally {
    await instance.close();
  }
});
