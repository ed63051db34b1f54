import assert from "node:assert/strict";
import type { Page, Route } from "playwright-core";
import { proxyClient, temporaryDirectory } from "@headworks/testkit";
import { startWeir } from "./rig.ts";
import { eventually, row, uiFile } from "./ui-rig.ts";

const journey = uiFile();

/** The code of the details, which the list prefetches. */
const DETAILS = "**/assets/entry-detail-*";

/** Holds back a part of the app until it fails like without a connection, or is released. */
async function holdPart(page: Page, pattern: string) {
  const held: Route[] = [];
  let isFailing = false;
  await page.route(pattern, async (route) => {
    if (isFailing) await route.abort("connectionrefused");
    else held.push(route);
  });
  return {
    isRequested: () => held.length > 0,
    fail: async (): Promise<void> => {
      isFailing = true;
      await Promise.all(held.splice(0).map((route) => route.abort("connectionrefused")));
    },
    release: async (): Promise<void> => await page.unroute(pattern),
  };
}

/** Sets a property of the window that a reload removes. */
async function mark(page: Page): Promise<() => Promise<boolean>> {
  await page.evaluate("globalThis.isMarked = true");
  return async () => await page.evaluate<boolean>("globalThis.isMarked === true");
}

journey("A part that cannot be loaded while the service is down does not break the page", async (bench) => {
  await using data = await temporaryDirectory();
  const first = await startWeir({ dataDir: data.path });
  const url = `${bench.origin.url}/orders`;
  await proxyClient(first.proxyPort).fetch(`${url}?early`);
  const page = await bench.open(`${first.apiUrl}/settings`);
  const isMarked = await mark(page);
  const part = await holdPart(page, DETAILS);
  await page.getByRole("link", { name: "Traffic", exact: true }).click();
  await row(page, "early").waitFor();
  await eventually("the part is requested", part.isRequested);
  await first.stop();
  await part.fail();
  const away = page.getByRole("button", { name: /^(?:Reconnecting|Offline)/u });
  await away.waitFor();
  await row(page, "early").click();
  await page.getByText("Could not show the details").waitFor();
  assert.equal(await isMarked(), true);
  await part.release();
  const ports = [`--proxy-port=${first.proxyPort}`, `--api-port=${first.apiPort}`];
  await using _second = await startWeir({ dataDir: data.path, args: ports });
  // Without waiting for the countdown. The channel may have reconnected by itself.
  const live = page.getByText("Live", { exact: true });
  await eventually("the channel is back", async () => {
    await away.click({ timeout: 500 }).catch(() => undefined);
    return await live.isVisible();
  });
  // It is retried without an action of the user.
  await page.getByRole("region", { name: "Request details" }).getByRole("heading", { level: 1 }).waitFor();
  assert.equal(await isMarked(), true);
});

journey("A part that is missing because of a newer version reloads the page", async (bench) => {
  await bench.send("/orders?kept");
  const page = await bench.open("/settings");
  const isMarked = await mark(page);
  const part = await holdPart(page, DETAILS);
  await page.route(`${bench.weir.apiUrl}/`, (route) =>
    route.fulfill({ contentType: "text/html", body: '<script type="module" src="/assets/index-other.js"></script>' }),
  );
  await page.getByRole("link", { name: "Traffic", exact: true }).click();
  await eventually("the part is requested", part.isRequested);
  await part.fail();
  await eventually("another page", async () => !(await isMarked().catch(() => true)));
  await part.release();
  await row(page, "kept").click();
  await page.getByRole("region", { name: "Request details" }).getByRole("heading", { level: 1 }).waitFor();
});
