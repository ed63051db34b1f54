import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { RequestListener } from "node:http";
import { peer, proxyClient, startOrigin, waitUntil } from "@headworks/testkit";
import type { Origin, ProxiedRequest, ProxyClient } from "@headworks/testkit";
import { chromium } from "playwright-core";
import type { Browser, BrowserContext, BrowserContextOptions, CDPSession, Locator, Page } from "playwright-core";
import { Cleanups, startWeir } from "./rig.ts";
import type { Entry, Weir } from "./rig.ts";
import { site } from "./ui-site.ts";

/** Resources of a journey: its file's service, an origin, and a browser page with an empty profile. */
export interface UiBench {
  readonly weir: Weir;
  readonly origin: Origin;
  readonly client: ProxyClient;
  /** A window on the UI; each is checked for dialogs and errors at the end of its test. */
  open(path: string, options?: BrowserContextOptions): Promise<Page>;
  /**
   * Accepts reports of refused event handlers. Chromium sends one for each handler that it parses, also in a
   * document that is only parsed for a preview and runs no scripts.
   */
  expectRefusedHandlers(): void;
  /** Requests paths of the origin, one after another, and waits until their entries are complete. */
  send(...requests: readonly (string | ProxiedRequest)[]): Promise<readonly Entry[]>;
}

// The headless shell starts pages in half the CPU time.
const chromiumPeer = peer("chromium-headless-shell", "chromium");
/** Generous, because other tests may keep the machine busy. */
const TIMEOUT_MS = 20_000;
const VIEWPORT = { width: 1280, height: 800 };

/** Starts and stops service, origin and browser for one file, and returns a function that adds journeys. */
export function uiFile(handler: RequestListener = site) {
  const cleanups = new Cleanups();
  let shared: { weir: Weir; origin: Origin; view: SharedView } | undefined;
  before(async () => {
    if (chromiumPeer.skip !== false) return;
    const weir = cleanups.use(await startWeir());
    const origin = cleanups.use(await startOrigin({ handler }));
    const browser = await launchChromium();
    cleanups.use({ [Symbol.asyncDispose]: async () => await browser.close() });
    shared = { weir, origin, view: await openView(browser, weir) };
  });
  after(() => cleanups.run());

  /** One journey: a session of its own, and pages without stored data of earlier ones. */
  return function journey(name: string, run: (bench: UiBench) => Promise<void>): void {
    void test(name, { skip: chromiumPeer.skip }, async (t) => {
      assert.ok(shared);
      const { weir, origin, view } = shared;
      await callApi(weir, "POST", "/sessions", { name });
      const session = (await weir.get<{ id: string; name: string }[]>("/sessions")).find((each) => each.name === name);
      assert.ok(session);
      await callApi(weir, "POST", `/sessions/${session.id}/switch`);
      await using windows = new Windows(view, weir);
      const client = proxyClient(weir.proxyPort, { ca: weir.caPem });
      const bench: UiBench = {
        weir,
        origin,
        client,
        open: async (path, options) => await windows.open(path, options),
        expectRefusedHandlers: () => windows.expectRefusedHandlers(),
        send: async (...requests) => await send(weir, origin, client, requests),
      };
      try {
        await run(bench);
      } catch (error) {
        for (const view of await windows.views()) t.diagnostic(view);
        throw error;
      }
      windows.assertQuiet();
    });
  };
}

/** Starts the browser of this machine without its background requests. */
async function launchChromium(): Promise<Browser> {
  return await chromium.launch({
    executablePath: chromiumPeer.path,
    timeout: 60_000,
    args: [
      "--no-sandbox",
      // Pages share compiled code; separate processes take two thirds more time.
      "--renderer-process-limit=1",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
}

/** The browser context of a file: it caches the UI's code, and discards stored data of pages. */
interface SharedView {
  readonly context: BrowserContext;
  readonly devTools: CDPSession;
}

async function openView(browser: Browser, weir: Weir): Promise<SharedView> {
  const context = await browser.newContext({ viewport: VIEWPORT });
  context.setDefaultTimeout(TIMEOUT_MS);
  // While it is open, the journeys' pages need no process of their own.
  const page = await context.newPage();
  await page.goto(`${weir.apiUrl}/icon.svg`);
  return { context, devTools: await context.newCDPSession(page) };
}

/** Pages of one test, and their errors. */
class Windows implements AsyncDisposable {
  readonly #view: SharedView;
  readonly #weir: Weir;
  readonly #cleanups = new Cleanups();
  readonly #pages: Page[] = [];
  readonly #problems: string[] = [];
  #refusedHandlersExpected = false;

  constructor(view: SharedView, weir: Weir) {
    this.#view = view;
    this.#weir = weir;
  }

  async open(path: string, options?: BrowserContextOptions): Promise<Page> {
    const page = await (options === undefined ? this.#pageWithoutPast() : this.#pageOfOwnContext(options));
    this.#pages.push(page);
    page.on("pageerror", (error) => this.#problems.push(`error in the page: ${error.stack ?? error.message}`));
    page.on("dialog", (dialog) => {
      this.#problems.push(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on("popup", () => this.#problems.push("a window opened by itself"));
    page.on("console", (message) => {
      if (/Content Security Policy/u.test(message.text())) this.#problems.push(message.text());
    });
    await page.goto(new URL(path, this.#weir.apiUrl).href);
    await page.getByRole("navigation", { name: "Screens" }).waitFor();
    return page;
  }

  async #pageWithoutPast(): Promise<Page> {
    const { context, devTools } = this.#view;
    const page = await context.newPage();
    const forget = async (): Promise<void> => {
      const { origin } = new URL(page.url());
      await page.close();
      await devTools.send("Storage.clearDataForOrigin", { origin, storageTypes: "all" });
    };
    this.#cleanups.use({ [Symbol.asyncDispose]: forget });
    return page;
  }

  async #pageOfOwnContext(options: BrowserContextOptions): Promise<Page> {
    const browser = this.#view.context.browser();
    assert.ok(browser);
    const context = await browser.newContext({ viewport: VIEWPORT, ...options });
    this.#cleanups.use({ [Symbol.asyncDispose]: async () => await context.close() });
    context.setDefaultTimeout(TIMEOUT_MS);
    return await context.newPage();
  }

  expectRefusedHandlers(): void {
    this.#refusedHandlersExpected = true;
  }

  /** For diagnosis of a failed journey: the accessible content and the errors of each window. */
  async views(): Promise<readonly string[]> {
    const shown = this.#pages.map(async (page) => {
      const tree = await page.locator("body").ariaSnapshot({ timeout: 2000 }).catch(String);
      return `${page.url()} shows\n${tree.slice(0, 6000)}`;
    });
    return [...(await Promise.all(shown)), ...this.#problems];
  }

  assertQuiet(): void {
    const isExpected = (problem: string): boolean =>
      this.#refusedHandlersExpected && problem.startsWith("Executing inline event handler violates");
    assert.deepEqual(
      this.#problems.filter((problem) => !isExpected(problem)),
      [],
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#cleanups.run();
  }
}

async function send(
  weir: Weir,
  origin: Origin,
  client: ProxyClient,
  requests: readonly (string | ProxiedRequest)[],
): Promise<readonly Entry[]> {
  const before = (await weir.entries()).length;
  for (const each of requests) {
    const request = typeof each === "string" ? { url: each } : each;
    const url = request.url.startsWith("/") ? origin.url + request.url : request.url;
    await client.fetch({ ...request, url });
  }
  return (await weir.waitForEntries(before + requests.length, undefined, TIMEOUT_MS)).slice(before);
}

/** A call that changes something; throws unless the status is 2xx. */
export async function callApi(weir: Weir, method: string, path: string, body?: unknown): Promise<unknown> {
  const response = await fetch(`${weir.apiUrl}/api${path}`, {
    method,
    headers: { "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  assert.ok(response.ok, `${method} ${path} got ${response.status}: ${text}`);
  return text === "" ? undefined : JSON.parse(text);
}

/** Opens another screen as the Back button does, without a reload. */
export async function visit(page: Page, path: string): Promise<void> {
  await page.evaluate(
    `history.pushState(null, "", ${JSON.stringify(path)}); dispatchEvent(new PopStateEvent("popstate"))`,
  );
}

/** The row of the traffic list whose text contains `text`. */
export function row(page: Page, text: string | RegExp): Locator {
  return page.getByRole("grid", { name: "Captured traffic" }).getByRole("row", { name: text });
}

/** Opens the details of a row, and waits until they are displayed. */
export async function openRow(page: Page, path: string): Promise<Locator> {
  await row(page, path).click();
  const pane = page.getByRole("region", { name: "Request details" });
  await pane.getByRole("heading", { level: 1 }).filter({ hasText: path }).waitFor();
  return pane;
}

/** Waits until a locator matches exactly `count` elements. */
export async function waitForCount(locator: Locator, count: number): Promise<void> {
  await waitUntil(async () => (await locator.count()) === count, {
    timeoutMs: TIMEOUT_MS,
    what: `${count} of ${locator.toString()}`,
  });
}

/** Waits until a condition of the page or the service is true. */
export async function eventually(what: string, probe: () => boolean | Promise<boolean>): Promise<void> {
  await waitUntil(probe, { timeoutMs: TIMEOUT_MS, what });
}
