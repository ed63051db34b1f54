import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import type { Page } from "playwright-core";
import { launchBrowser } from "./browser.ts";
import { startFakeApi, type FakeApi } from "./fake-api.ts";
import { measureLargeBody } from "./large-body.ts";

/**
 * The budgets of the web UI with 100,000 generated entries, and with bodies of 20 MB captured by a real Weir, in a
 * real browser without a GPU:
 * `npm run build && node bench/ui/ui.bench.ts`. Exits with 1 if a budget is exceeded.
 */
const DIST = join(import.meta.dirname, "../../apps/capture-ui/dist");
const IN_PAGE = join(import.meta.dirname, "in-page.js");
const ROWS = Number(process.env["ROWS"] ?? 100_000);

interface Result {
  readonly what: string;
  readonly value: number;
  readonly unit: string;
  readonly limit: number;
  readonly atLeast?: boolean;
}

/** Compressed size of the traffic screen: all files in index.html, and the chunks they import. */
function shellGzipKb(): number {
  const seen = new Set<string>();
  const visit = (file: string): void => {
    if (seen.has(file) || !existsSync(join(DIST, file))) return;
    seen.add(file);
    const text = readFileSync(join(DIST, file), "utf8");
    if (file.endsWith(".css")) return;
    for (const match of text.matchAll(/(?:from|import)\s*"\.\/([^"]+\.js)"/gu)) visit(`assets/${match[1] ?? ""}`);
    if (!file.endsWith(".html")) return;
    for (const match of text.matchAll(/(?:src|href)="\/(assets\/[^"]+)"/gu)) visit(match[1] ?? "");
  };
  visit("index.html");
  for (const file of readdirSync(join(DIST, "assets"))) if (file.startsWith("traffic-view")) visit(`assets/${file}`);
  return [...seen].reduce((sum, file) => sum + gzipSync(readFileSync(join(DIST, file))).length, 0) / 1000;
}

interface Painted {
  readonly sinceNavigationMs: number;
  readonly sinceRequestMs: number;
}

interface Frames {
  readonly fps: number;
  readonly maxMs: number;
}

async function open(page: Page, url: string): Promise<Painted> {
  await page.goto(url);
  await page.waitForSelector("[role=row][data-index='0']");
  return page.evaluate<Painted>("measure.painted()");
}

/** Frames per second of an empty page. */
async function idleFps(page: Page): Promise<number> {
  await page.goto("data:text/html,<div role=grid></div>");
  const frames = await scroll(page, 0, 1500);
  return frames.fps;
}

/** Scrolls for some seconds by a distance per frame and measures the frames. */
function scroll(page: Page, pixelsPerFrame: number, ms: number): Promise<Frames> {
  return page.evaluate<Frames>(`measure.scroll(${pixelsPerFrame}, ${ms})`);
}

/** The same, with the main thread's work per frame, which is more meaningful than frames on a busy machine. */
async function scrollWork(
  page: Page,
  pixelsPerFrame: number,
  ms: number,
): Promise<Frames & { readonly workMs: number }> {
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable");
  const busyMs = async (): Promise<number> => {
    const { metrics } = await session.send("Performance.getMetrics");
    return (metrics.find((metric) => metric.name === "TaskDuration")?.value ?? 0) * 1000;
  };
  const before = await busyMs();
  const frames = await scroll(page, pixelsPerFrame, ms);
  const workMs = ((await busyMs()) - before) / Math.max(1, (frames.fps * ms) / 1000);
  await session.detach();
  return { ...frames, workMs };
}

async function heapMb(page: Page): Promise<number> {
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize } = await session.send("Runtime.getHeapUsage");
  await session.detach();
  return usedSize / 1_048_576;
}

/** From selecting a filter to its first rows: the slowest of five. */
async function filterMs(page: Page): Promise<number> {
  let slowest = 0;
  for (const q of ["host:api", "status:500", "method:PUT", "type:image", "dur:>1s"]) {
    slowest = Math.max(slowest, await page.evaluate<number>(`measure.filter(${JSON.stringify(q)})`));
  }
  return slowest;
}

/** Frames while a thousand events per second arrive. */
async function liveFrames(page: Page, api: FakeApi, ms: number): Promise<Frames> {
  const timer = setInterval(() => api.tick(50), 100);
  try {
    return await scroll(page, 0, ms);
  } finally {
    clearInterval(timer);
  }
}

async function measure(): Promise<readonly Result[]> {
  const api = await startFakeApi({ rows: ROWS, distFolder: DIST });
  const browser = await launchBrowser();
  try {
    const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
    const page = await context.newPage();
    await page.addInitScript({ path: IN_PAGE });
    // The frame rate of an empty page, as a baseline for a busy machine.
    const idle = await idleFps(page);
    const cold = await open(page, `${api.url}/traffic`);
    const slow = await scrollWork(page, 60, 4000);
    const fast = await scroll(page, 6000, 4000);
    await scroll(page, -1e9, 500);
    const live = await liveFrames(page, api, 5000);
    const filter = await filterMs(page);
    await open(page, `${api.url}/traffic?mode=waterfall`);
    const waterfall = await scrollWork(page, 60, 3000);
    const warm = await open(page, `${api.url}/traffic`);
    await scroll(page, 40_000, 4000);
    const heap = await heapMb(page);
    await context.close();
    const body = await measureLargeBody(browser, IN_PAGE);
    return [
      { what: "An empty page on this machine now", value: idle, unit: "fps", limit: 0, atLeast: true },
      { what: "Traffic screen, compressed", value: shellGzipKb(), unit: "kB", limit: 300 },
      { what: `First rows of ${ROWS}: request to screen`, value: warm.sinceRequestMs, unit: "ms", limit: 500 },
      { what: "  from opening the page, nothing cached", value: cold.sinceNavigationMs, unit: "ms", limit: 1500 },
      { what: "Scrolling, 2 rows a frame", value: slow.fps, unit: "fps", limit: 55, atLeast: true },
      { what: "  main thread per frame", value: slow.workMs, unit: "ms", limit: 16 },
      { what: "  longest frame", value: slow.maxMs, unit: "ms", limit: 100 },
      { what: "Scrolling, 200 rows a frame", value: fast.fps, unit: "fps", limit: 50, atLeast: true },
      { what: "Waterfall, 2 rows a frame", value: waterfall.fps, unit: "fps", limit: 50, atLeast: true },
      { what: "  main thread per frame", value: waterfall.workMs, unit: "ms", limit: 16 },
      { what: "1,000 events/s at the top", value: live.fps, unit: "fps", limit: 55, atLeast: true },
      { what: "  longest frame", value: live.maxMs, unit: "ms", limit: 100 },
      { what: "Filter to first row, slowest of 5", value: filter, unit: "ms", limit: 500 },
      { what: "JavaScript heap after scrolling through", value: heap, unit: "MB", limit: 250 },
      { what: "20 MB of JSON: first click to first lines", value: body.firstClickMs, unit: "ms", limit: 300 },
      { what: "  click on a row, slowest of 5", value: body.rowMs, unit: "ms", limit: 300 },
      { what: "  the same, sent gzipped", value: body.gzipMs, unit: "ms", limit: 300 },
      { what: "  click on the tab, slowest of 5", value: body.tabMs, unit: "ms", limit: 300 },
      { what: "  longest task while they load", value: body.longestTaskMs, unit: "ms", limit: 50 },
      { what: "  until the whole is laid out", value: body.wholeMs, unit: "ms", limit: 5000 },
    ];
  } finally {
    await browser.close();
    await api.close();
  }
}

let failed = false;
for (const { what, value, unit, limit, atLeast } of await measure()) {
  const good = atLeast === true ? value >= limit : value <= limit;
  failed ||= !good;
  const shown = value >= 100 ? value.toFixed(0) : value.toFixed(1);
  console.log(
    `${good ? "ok  " : "OVER"} ${what.padEnd(42)} ${shown.padStart(8)} ${unit.padEnd(3)}  (${atLeast === true ? "at least" : "at most"} ${limit})`,
  );
}
process.exitCode = failed ? 1 : 0;
