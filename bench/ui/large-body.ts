import { gzipSync } from "node:zlib";
import { proxyClient, startOrigin } from "@headworks/testkit";
import type { Browser, Page } from "playwright-core";
import { startWeir } from "./running-weir.ts";

const BODY_BYTES = 20_000_000;

/** The time from the click until a JSON body of 20 MB shows its first lines. */
export interface LargeBodyTimes {
  /** Click on a row of a page that has not shown details yet. */
  readonly firstClickMs: number;
  /** Click on a row, the slowest of several. */
  readonly rowMs: number;
  /** The same with a gzip body. */
  readonly gzipMs: number;
  /** Click on the tab that shows the body, the slowest of several. */
  readonly tabMs: number;
  /** Longest task of the page's main thread while bodies load. */
  readonly longestTaskMs: number;
  /** From the click until the last byte is laid out. */
  readonly wholeMs: number;
}

/** One line of JSON without white space, of about `bytes` bytes. */
function largeJson(bytes: number): Buffer {
  const items: string[] = [];
  for (let size = 2, id = 0; size < bytes; id++) {
    const item = {
      id,
      name: `Item number ${id}`,
      price: id * 1.25,
      tags: ["a", `t${id % 17}`],
      stock: { left: id % 9 },
    };
    items.push(JSON.stringify(item));
    size += (items.at(-1)?.length ?? 0) + 1;
  }
  return Buffer.from(`[${items.slice(0, -1).join(",")}]`);
}

/** Captures large bodies with a real Weir and opens them in `browser`. The web UI must have been built. */
export async function measureLargeBody(browser: Browser, inPage: string): Promise<LargeBodyTimes> {
  const json = largeJson(BODY_BYTES);
  const zipped = gzipSync(json);
  await using origin = await startOrigin({
    handler: ({ url }, response) => {
      response.setHeader("content-type", "application/json");
      if (url === "/gzip") response.setHeader("content-encoding", "gzip");
      response.end(url === "/gzip" ? zipped : url === "/large" ? json : '{"name":"small"}');
    },
  });
  await using weir = await startWeir();
  const client = proxyClient(weir.proxyPort);
  for (const path of ["/small", "/large", "/gzip"]) await client.fetch(origin.url + path);
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  try {
    const page = await context.newPage();
    await page.addInitScript({ path: inPage });
    await page.goto(`${weir.apiUrl}/traffic`);
    await page.locator("[role=row][data-index='2']").waitFor();
    await page.waitForLoadState("networkidle");
    return await clickThrough(page);
  } finally {
    await context.close();
  }
}

async function clickThrough(page: Page): Promise<LargeBodyTimes> {
  const firstClickMs = await openRow(page, "/large", "Item number 0");
  const wholeMs = firstClickMs + (await page.evaluate<number>("measure.wholeBody()"));
  await page.evaluate("measure.watchTasks()");
  let rowMs = 0;
  let gzipMs = 0;
  let tabMs = 0;
  for (let round = 0; round < 5; round++) {
    await openRow(page, "/small", "small");
    rowMs = Math.max(rowMs, await openRow(page, "/large", "Item number 0"));
    await page.evaluate("measure.wholeBody()");
    await page.getByRole("tab", { name: "Overview" }).click();
    tabMs = Math.max(
      tabMs,
      await page.evaluate<number>('measure.bodyShown("[role=tab]", "Messages", "Item number 0")'),
    );
    await openRow(page, "/small", "small");
    gzipMs = Math.max(gzipMs, await openRow(page, "/gzip", "Item number 0"));
  }
  const longestTaskMs = await page.evaluate<number>("measure.longestTask()");
  return { firstClickMs, rowMs, gzipMs, tabMs, longestTaskMs, wholeMs };
}

function openRow(page: Page, path: string, text: string): Promise<number> {
  return page.evaluate<number>(`measure.bodyShown("[role=row]", ${JSON.stringify(path)}, ${JSON.stringify(text)})`);
}
