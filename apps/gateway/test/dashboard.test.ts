import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { chromium, type Browser, type BrowserContextOptions, type Page } from "playwright-core";
import { peer, startOrigin, temporaryDirectory } from "@headworks/testkit";
import { ADMIN, call, DEV, listeners } from "./admin-rig.ts";
import { serving, startGateway, type TestGateway } from "./gateway-rig.ts";

const chromiumPeer = peer("chromium-headless-shell", "chromium");
const HOSTILE = "<img src=x onerror=alert(1)>";
let browser: Browser | undefined;

before(async () => {
  if (chromiumPeer.skip !== false) return;
  browser = await chromium.launch({
    executablePath: chromiumPeer.path,
    timeout: 60_000,
    args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"],
  });
});
after(async () => await browser?.close());

const document = (port: number) => ({
  ...serving("echo", [port, 1], { breaker: {}, health: {} }),
  listeners,
  admin: ADMIN,
  consumers: [
    {
      name: "acme",
      credentials: [{ type: "api_key" as const, key: "k" }],
      quotas: { daily_requests: 10n, monthly_requests: 200_000n },
    },
    { name: "trial", credentials: [{ type: "api_key" as const, key: "t" }], quotas: { daily_requests: 3n } },
  ],
  routes: [
    {
      name: "api-v2",
      service: "echo",
      auth_required: true,
      match: { path: { type: "prefix" as const, value: "/v2" } },
      action: { type: "proxy" as const },
    },
    {
      name: "home",
      match: { path: { type: "exact" as const, value: "/" }, headers: { "x-note": HOSTILE } },
      action: { type: "respond" as const, status: 200, body: HOSTILE },
    },
  ],
  webhooks: [{ url: `http://127.0.0.1:${port}/${encodeURIComponent(HOSTILE)}`, events: ["config_rejected" as const] }],
});

interface Window extends AsyncDisposable {
  readonly page: Page;
  /** What the page complained of, and whom it asked. */
  readonly problems: readonly string[];
  readonly asked: readonly string[];
}

async function open(url: string, options: BrowserContextOptions = {}): Promise<Window> {
  assert.ok(browser);
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  context.setDefaultTimeout(20_000);
  const page = await context.newPage();
  const problems: string[] = [];
  const asked: string[] = [];
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("console", (message) => {
    if (message.type() === "error" && !/404 \(Not Found\)/.test(message.text())) problems.push(message.text());
  });
  page.on("request", (request) => asked.push(new URL(request.url()).origin));
  await page.goto(url);
  return { page, problems, asked, [Symbol.asyncDispose]: async () => await context.close() };
}

async function running(run: (gateway: TestGateway, url: string) => Promise<void>): Promise<void> {
  await using origin = await startOrigin();
  await using directory = await temporaryDirectory();
  await using gateway = await startGateway(document(origin.port), {
    environment: { GATEWAY_ADMIN_DEV: "1", GATEWAY_STATE_DB: directory.file("state.db") },
  });
  await run(gateway, gateway.gateway.adminUrl ?? "");
}

const pictures = process.env["SLUICE_PICTURES"];
const picture = async (page: Page, name: string): Promise<void> => {
  if (pictures !== undefined) await page.screenshot({ path: `${pictures}/${name}.png`, fullPage: true });
};

describe("the page", { concurrency: 12 }, () => {
  test(
    "the page shows what runs, follows events, and requests nothing but the gateway",
    { skip: chromiumPeer.skip },
    async () => {
      await running(async (gateway, url) => {
        assert.equal((await gateway.send({ path: "/v2/x", fields: ["X-Api-Key: k"] })).status, 200);
        await using window = await open(url, { colorScheme: "light" });
        const { page } = window;
        await page.locator("#live[data-state=live]").waitFor();
        const text = async (id: string): Promise<string> =>
          (await page.locator(`#${id}`).innerText()).replace(/\s+/g, " ");
        assert.match(await text("facts"), /Generation 1 .*Healthy endpoints 2 of 2 Breakers not closed 0/);
        assert.match(await text("upstreams"), /echo closed 127\.0\.0\.1:\d+ healthy/);
        assert.match(await text("budgets"), /acme daily 9 1 of 10 .*acme monthly 199999 .*trial daily 3 0 of 3/);
        assert.match(await text("routes"), /api-v2 prefix \/v2 to echo authentication home exact \/ headers respond/);
        assert.match(await text("events"), /config published generation 1/);
        await picture(page, "dashboard-light");
        await call(gateway, "/upstreams/echo/breaker", { method: "POST", body: '{"state":"open"}' });
        await page.locator("#events").getByText("breaker opened").waitFor();
        await page.locator("#upstreams").getByText("open").first().waitFor();
        await gateway.reload({ ...document(2), routes: [] });
        await page.locator("#generations").getByText("2 (runs)").waitFor();
        assert.match(await text("routes"), /No routes/);
        assert.deepEqual(window.problems, []);
        assert.deepEqual(
          [...new Set(window.asked)].filter((origin) => origin !== "null"),
          [url],
        );
      });
    },
  );

  test(
    "the page works in the dark and on a telephone, where nothing is wider than the screen",
    { skip: chromiumPeer.skip },
    async () => {
      await running(async (_gateway, url) => {
        await using window = await open(url, { colorScheme: "dark", viewport: { width: 390, height: 844 } });
        const { page } = window;
        await page.locator("#live[data-state=live]").waitFor();
        const wide = await page.evaluate("document.documentElement.scrollWidth");
        assert.equal(wide, 390);
        const background = String(await page.evaluate("getComputedStyle(document.body).backgroundColor"));
        assert.equal(background, "rgb(15, 21, 25)");
        await picture(page, "dashboard-dark-narrow");
        assert.deepEqual(window.problems, []);
      });
    },
  );

  test(
    "when the stream cannot be had the page polls, and when the gateway is gone it says so",
    { skip: chromiumPeer.skip },
    async () => {
      await running(async (gateway, url) => {
        assert.ok(browser);
        const context = await browser.newContext();
        context.setDefaultTimeout(20_000);
        try {
          const page = await context.newPage();
          await page.route("**/events/stream", async (route) => await route.abort());
          await page.goto(url);
          await page.locator("#live[data-state=polling]").waitFor();
          await gateway.reload({ listeners, admin: ADMIN, routes: [] });
          await page.locator("#generations").getByText("2 (runs)").waitFor();
          await gateway.gateway.stop(100);
          await page.locator("#problem").getByText("Could not load data").waitFor();
        } finally {
          await context.close();
        }
      });
    },
  );

  test(
    "a gateway that starts again and counts from 1 has its own routes shown",
    { skip: chromiumPeer.skip },
    async () => {
      const respond = (name: string) => ({
        name,
        match: { path: { type: "exact" as const, value: `/${name}` } },
        action: { type: "respond" as const, status: 200 },
      });
      let url = "";
      const started = async (route: string): Promise<TestGateway> =>
        await startGateway(
          { listeners, admin: { bind: url === "" ? ADMIN.bind : new URL(url).host }, routes: [respond(route)] },
          DEV,
        );
      const first = await started("before");
      url = first.gateway.adminUrl ?? "";
      await using window = await open(url);
      const { page } = window;
      await page.locator("#routes").getByText("before").first().waitFor();
      await first[Symbol.asyncDispose]();
      await page.locator("#problem").getByText("Could not load data").waitFor();
      await using _second = await started("afterwards");
      await page.locator("#routes").getByText("afterwards").first().waitFor();
    },
  );
});

test("GET / names its style and script by hash, allows nothing else, and is for readers alone", async () => {
  await using gateway = await startGateway(
    { listeners, admin: ADMIN, routes: [] },
    { environment: { GATEWAY_ADMIN_DEV: "1" } },
  );
  const response = await call(gateway, "/");
  assert.equal(response.status, 200);
  const policy = response.headers.get("content-security-policy") ?? "";
  assert.match(policy, /^default-src 'none'; style-src 'sha256-[^']+'; script-src 'sha256-[^']+'; connect-src 'self';/);
  assert.doesNotMatch(policy, /unsafe|http|\*/);
  assert.doesNotMatch(response.text, /\b(?:src|href)="(?!data:|#)/);
  assert.equal((await call(gateway, "/", { headers: { origin: "http://evil.example" } })).status, 403);
});
