import assert from "node:assert/strict";
import { AxeBuilder } from "@axe-core/playwright";
import type { Page } from "playwright-core";
import { callApi, openRow, row, uiFile } from "./ui-rig.ts";

const journey = uiFile();

/** What keeps people from using a page, as axe judges it. Colours are all that themes differ in. */
async function barriers(page: Page, colorScheme: "light" | "dark"): Promise<string[]> {
  await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
  const builder = new AxeBuilder({ page }).setLegacyMode().options({ resultTypes: ["violations"] });
  const { violations } = await (colorScheme === "dark" ? builder.withRules(["color-contrast"]) : builder).analyze();
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, nodes }) =>
      nodes.map((node) => `${id}: ${node.html.slice(0, 120)} (${node.failureSummary?.split("\n")[1]?.trim() ?? ""})`),
    );
}

journey("No screen has a serious barrier, in either theme", async (bench) => {
  const page = await bench.open("/traffic", { reducedMotion: "reduce", viewport: { width: 1440, height: 900 } });
  const found: Record<string, string[]> = {};
  const check = async (name: string): Promise<void> => {
    for (const theme of ["light", "dark"] as const) {
      const list = await barriers(page, theme);
      if (list.length > 0) found[`${name}, ${theme}`] = list;
    }
  };
  await page.getByRole("heading", { name: "No traffic yet" }).waitFor();
  await check("first run");
  await bench.send("/orders", "/missing", "/broken", "/reset", "/page", {
    method: "POST",
    url: "/form",
    body: "a=b",
  });
  await row(page, "/reset").waitFor();
  await check("list");
  const pane = await openRow(page, "/orders");
  for (const tab of ["Overview", "Params", "Cookies", "Timing", "Messages"]) {
    await pane.getByRole("tab", { name: new RegExp(`^${tab}`, "u") }).click();
    await check(`detail, ${tab}`);
  }
  const panel = pane.getByRole("region", { name: "Body of the response" });
  for (const view of ["Tree", "Table", "Hex", "Raw", "Pretty"]) {
    await panel.getByRole("radio", { name: view, exact: true }).click();
    await check(`body, ${view}`);
  }
  await openRow(page, "/reset");
  await check("failed entry");
  await page.keyboard.press("Escape");
  await page.getByRole("combobox", { name: "Filter" }).fill("status:>=");
  await page.getByRole("alert").waitFor();
  await check("filter with an error");
  await callApi(bench.weir, "POST", "/blocklist", { pattern: "ads.example", note: "tracker" });
  await callApi(bench.weir, "POST", "/focus", { pattern: "*.shop.example" });
  for (const path of ["/traffic?mode=tree", "/traffic?mode=waterfall", "/traffic?q=host:nowhere"]) {
    await page.goto(bench.weir.apiUrl + path);
    await page.getByRole("treeitem").or(row(page, "/orders")).or(page.getByText("Nothing matches")).first().waitFor();
    await check(path);
  }
  for (const [path, landmark] of [
    ["/sessions", "active"],
    ["/blocklist", "tracker"],
    ["/focus", "*.shop.example"],
    ["/connect", "Test now"],
    ["/settings", "Entries kept"],
  ] as const) {
    await page.goto(bench.weir.apiUrl + path);
    await page.getByText(landmark, { exact: true }).first().waitFor();
    await check(path);
  }
  await page.keyboard.press("?");
  await page.getByRole("dialog").waitFor();
  await check("keys");
  await page.goto(`${bench.weir.apiUrl}/setup`);
  await page.getByRole("heading", { level: 1 }).waitFor();
  await check("set-up page for devices");
  assert.deepEqual(found, {});
});
