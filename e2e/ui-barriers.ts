import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type axe from "axe-core";
import type { Page } from "playwright-core";

/** Without comments, because the browser parses it again on each page. */
const AXE = readFileSync(fileURLToPath(import.meta.resolve("axe-core/axe.min.js")), "utf8");

/** Accessibility violations of a part of a page, by axe. Themes differ only in colours. */
async function barriers(page: Page, colorScheme: "light" | "dark", part: string): Promise<string[]> {
  await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
  if (!(await page.evaluate<boolean>("'axe' in window"))) await page.evaluate(AXE);
  const options: axe.RunOptions = {
    resultTypes: ["violations"],
    ...(colorScheme === "dark" ? { runOnly: ["color-contrast"] } : {}),
  };
  const { violations } = await page.evaluate<axe.AxeResults>(
    `axe.run(${JSON.stringify(part)}, ${JSON.stringify(options)})`,
  );
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, nodes }) =>
      nodes.map((node) => `${id}: ${node.html.slice(0, 160)} (${node.failureSummary?.split("\n")[1]?.trim() ?? ""})`),
    );
}

/**
 * Collects the serious violations of page states, in both themes, by the names passed to `check`. If only a
 * part of the page has changed since it was checked as a whole, a selector of that part saves time.
 */
export function barrierCheck(page: Page): {
  readonly found: Readonly<Record<string, readonly string[]>>;
  readonly check: (name: string, part?: string) => Promise<void>;
} {
  const found: Record<string, readonly string[]> = {};
  return {
    found,
    check: async (name, part = "html") => {
      for (const theme of ["light", "dark"] as const) {
        const list = await barriers(page, theme, part);
        if (list.length > 0) found[`${name}, ${theme}`] = list;
      }
    },
  };
}
