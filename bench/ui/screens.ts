import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { Browser, Page } from "playwright-core";
import { launchBrowser } from "./browser.ts";
import { startWeir } from "./running-weir.ts";
import { SCENES, type Scene } from "./scenes.ts";
import { fillWithTraffic } from "./screen-traffic.ts";

/**
 * Takes pictures of each screen and its important states, in both themes and at three widths, for reviews:
 * `npm run build && node bench/ui/screens.ts --to <folder> [--only <part of a name>]`. Each picture shows one scene in
 * one theme, with the widths side by side. Exits with 1 if a scene cannot be reached or scrolls horizontally.
 */
const SIZES = [
  { width: 1440, height: 900 },
  { width: 1024, height: 768 },
  { width: 390, height: 844 },
];
const THEMES = ["light", "dark"] as const;

interface Shot {
  readonly png: Buffer;
  readonly width: number;
}

async function take(browser: Browser, apiUrl: string, scene: Scene, folder: string): Promise<string[]> {
  const problems: string[] = [];
  for (const colorScheme of THEMES) {
    const shots: Shot[] = [];
    for (const viewport of SIZES) {
      const context = await browser.newContext({ viewport, colorScheme, reducedMotion: "reduce" });
      context.setDefaultTimeout(6000);
      const page = await context.newPage();
      page.on("pageerror", (error) => problems.push(`${scene.name}: ${error.message}`));
      try {
        await scene.before?.(page);
        await page.goto(apiUrl + scene.path);
        await scene.arrange?.(page, viewport.width < 700);
        await settle(page);
      } catch (error) {
        const first = (error instanceof Error ? error.message : String(error)).split("\n", 3).join(" ");
        problems.push(`${scene.name}, ${viewport.width}, ${colorScheme}: ${first}`);
      }
      const overhang = await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
      if (overhang > 0) problems.push(`${scene.name}, ${viewport.width}: ${overhang} px wider than the window`);
      shots.push({ png: await page.screenshot(), width: viewport.width });
      await context.close();
    }
    await writeFile(join(folder, `${scene.name}-${colorScheme}.png`), await beside(browser, shots));
  }
  return problems;
}

async function settle(page: Page): Promise<void> {
  await page.waitForLoadState("networkidle");
  await page.evaluate("document.fonts.ready.then(() => new Promise((done) => setTimeout(done, 250)))");
}

/** The screenshots of all widths in one picture. */
async function beside(browser: Browser, shots: readonly Shot[]): Promise<Buffer> {
  const width = shots.reduce((sum, shot) => sum + shot.width + 12, 12);
  const page = await browser.newPage({ viewport: { width, height: 924 } });
  const images = shots.map(({ png }) => `<img src="data:image/png;base64,${png.toString("base64")}">`).join("");
  await page.setContent(
    `<style>body{margin:12px;display:flex;gap:12px;align-items:start;background:#888}</style>${images}`,
  );
  const picture = await page.screenshot();
  await page.close();
  return picture;
}

const { values } = parseArgs({ options: { to: { type: "string" }, only: { type: "string", default: "" } } });
if (values.to === undefined) throw new Error("--to <folder> says where the pictures go");
const folder = values.to;
await mkdir(folder, { recursive: true });
const scenes = SCENES.filter((scene) => scene.name.includes(values.only));
const browser = await launchBrowser();
try {
  await using empty = await startWeir();
  await using full = await startWeir();
  await fillWithTraffic(full);
  for (const scene of scenes) {
    const problems = await take(browser, scene.isEmpty === true ? empty.apiUrl : full.apiUrl, scene, folder);
    console.log(problems.length === 0 ? `ok   ${scene.name}` : `BAD  ${problems.join("\n     ")}`);
    if (problems.length > 0) process.exitCode = 1;
  }
} finally {
  await browser.close();
}
