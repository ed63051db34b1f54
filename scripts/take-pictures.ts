import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";
import type { Page } from "playwright-core";
import { picturedTraffic } from "./pictured-traffic.ts";
import { repositoryRoot } from "./source-tree.ts";
import { ensureUi } from "./ui-build.ts";

// Takes the README's pictures of a real service with recorded traffic of a fictitious shop:
// `node scripts/take-pictures.ts [folder]`. WEIR_CHROMIUM names another browser than /usr/bin/chromium.

const SIZE = { width: 1440, height: 900 };

/** Takes the Traffic screen with an open JSON body, in both themes, into `folder`. */
async function takePictures(apiUrl: string, folder: string): Promise<void> {
  const imported = await call(apiUrl, "/traffic/import/har?session_name=Checkout", picturedTraffic(Date.now()));
  await call(apiUrl, `/sessions/${String(imported["session_id"])}/switch`);
  const browser = await chromium.launch({
    executablePath: process.env["WEIR_CHROMIUM"] ?? "/usr/bin/chromium",
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-lcd-text",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-sync",
    ],
  });
  try {
    for (const [colorScheme, name] of [
      ["light", "traffic.png"],
      ["dark", "traffic-dark.png"],
    ] as const) {
      const page = await browser.newPage({ viewport: SIZE, colorScheme, reducedMotion: "reduce" });
      await arrange(page, apiUrl);
      await page.screenshot({ path: join(folder, name) });
      await page.close();
    }
  } finally {
    await browser.close();
  }
}

async function arrange(page: Page, apiUrl: string): Promise<void> {
  await page.goto(`${apiUrl}/traffic`);
  await page.getByRole("row", { name: /orders, 201/u }).click();
  const pane = page.getByRole("region", { name: "Request details" });
  await pane.getByRole("tab", { name: "Messages" }).click();
  await pane.getByText('"ord_7Qm2vX"').waitFor();
  await page.getByText("Live", { exact: true }).waitFor();
  // The pointer would show a tooltip.
  await page.mouse.move(SIZE.width - 1, SIZE.height - 1);
  await page.evaluate("document.fonts.ready");
}

async function call(apiUrl: string, path: string, body?: string): Promise<Readonly<Record<string, unknown>>> {
  const response = await fetch(`${apiUrl}/api${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    ...(body === undefined ? {} : { body }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`POST ${path} got ${response.status}: ${text}`);
  return JSON.parse(text) as Readonly<Record<string, unknown>>;
}

/** Runs Weir on free ports while `use` runs. */
async function withWeir(use: (apiUrl: string) => Promise<void>): Promise<void> {
  const dataDir = await mkdtemp(join(tmpdir(), "weir-pictures-"));
  const main = join(repositoryRoot, "apps/capture-proxy/bin/weir.js");
  const options = ["serve", "--json", `--data-dir=${dataDir}`, "--proxy-port=0", "--api-port=0"];
  const weir = spawn(process.execPath, [main, ...options], { stdio: ["ignore", "pipe", "inherit"] });
  try {
    for await (const line of createInterface({ input: weir.stdout })) {
      if (!line.startsWith('{"proxy"')) continue;
      await use((JSON.parse(line) as { readonly api: string }).api);
      break;
    }
  } finally {
    if (weir.exitCode === null) {
      weir.kill();
      await once(weir, "exit");
    }
    await rm(dataDir, { recursive: true, force: true });
  }
}

const folder = process.argv[2] ?? join(repositoryRoot, "docs/pictures");
await mkdir(folder, { recursive: true });
await ensureUi(repositoryRoot, (line) => console.error(line));
await withWeir(async (apiUrl) => await takePictures(apiUrl.replace(/\/$/u, ""), folder));
