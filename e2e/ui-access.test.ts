import assert from "node:assert/strict";
import { barrierCheck } from "./ui-barriers.ts";
import { callApi, openRow, row, uiFile } from "./ui-rig.ts";

const journey = uiFile();

journey("No screen has a serious barrier, in either theme", async (bench) => {
  const page = await bench.open("/traffic", { reducedMotion: "reduce", viewport: { width: 1440, height: 900 } });
  const { found, check } = barrierCheck(page);
  await page.getByRole("heading", { name: "No traffic yet" }).waitFor();
  await check("first run");
  await bench.send("/orders?page=2", "/missing", "/broken", "/reset", "/page", {
    method: "POST",
    url: "/form",
    body: "a=b",
  });
  await row(page, "/reset").waitFor();
  await check("list");
  const pane = await openRow(page, "/orders");
  await check("detail");
  for (const tab of ["Overview", "Params", "Cookies", "Timing", "Messages"]) {
    await pane.getByRole("tab", { name: new RegExp(`^${tab}`, "u") }).click();
    await check(`detail, ${tab}`, '[aria-label="Entry"]');
  }
  const panel = pane.getByRole("region", { name: "Body of the response" });
  for (const view of ["Tree", "Table", "Hex", "Raw", "Pretty"]) {
    await panel.getByRole("radio", { name: view, exact: true }).click();
    await check(`body, ${view}`, '[aria-label="Body of the response"]');
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
