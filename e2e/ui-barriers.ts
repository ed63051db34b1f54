import { AxeBuilder } from "@axe-core/playwright";
import type { Page } from "playwright-core";

/** What keeps people from using a page, as axe judges it. Colours are all that themes differ in. */
async function barriers(page: Page, colorScheme: "light" | "dark"): Promise<string[]> {
  await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
  const builder = new AxeBuilder({ page }).setLegacyMode().options({ resultTypes: ["violations"] });
  const { violations } = await (colorScheme === "dark" ? builder.withRules(["color-contrast"]) : builder).analyze();
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, nodes }) =>
      nodes.map((node) => `${id}: ${node.html.slice(0, 160)} (${node.failureSummary?.split("\n")[1]?.trim() ?? ""})`),
    );
}

/** Collects the serious barriers of states of a page, in both themes, by the names that `check` is given. */
export function barrierCheck(page: Page): {
  readonly found: Readonly<Record<string, readonly string[]>>;
  readonly check: (name: string) => Promise<void>;
} {
  const found: Record<string, readonly string[]> = {};
  return {
    found,
    check: async (name) => {
      for (const theme of ["light", "dark"] as const) {
        const list = await barriers(page, theme);
        if (list.length > 0) found[`${name}, ${theme}`] = list;
      }
    },
  };
}
