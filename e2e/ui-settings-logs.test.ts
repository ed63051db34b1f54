import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Locator } from "playwright-core";
import type { LogStatus } from "@headworks/capture-contract";
import { callApi, eventually, uiFile } from "./ui-rig.ts";

const journey = uiFile();

async function save(card: Locator): Promise<void> {
  await card.getByRole("button", { name: "Save", exact: true }).click();
  await card.getByRole("button", { name: "Save", exact: true }).waitFor({ state: "detached" });
}

/** The value beside a name. */
function fact(card: Locator, name: string): Locator {
  return card.locator("dt", { hasText: name }).locator("xpath=following-sibling::dd[1]");
}

journey("The log's file is put away at the press of a button, and its last lines are shown as text", async (bench) => {
  const page = await bench.open("/settings");
  const card = page.locator("#logs");
  const directory = join(bench.weir.dataDir, "logs");
  await card
    .getByRole("status")
    .getByText(`Written to ${join(directory, "weir.log")}`)
    .waitFor();
  await card.getByRole("button", { name: "Show the last lines" }).click();
  await card.getByRole("region", { name: "Last lines of the log" }).getByText("Weir has started").waitFor();
  await card.getByRole("button", { name: "Begin a new file now" }).click();
  await card.getByText(/^Put away as weir\.log\.\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d/u).waitFor();
  assert.equal(readdirSync(directory).filter((name) => name.startsWith("weir.log.")).length, 1);
  await eventually("the count of old files", async () =>
    ((await fact(card, "Old files").textContent()) ?? "").startsWith("1 of at most 7"),
  );
});

journey("Traffic is logged as soon as it is switched on, and what waits for a restart says so", async (bench) => {
  const page = await bench.open("/settings");
  const card = page.locator("#logs");
  await card.getByRole("switch", { name: "Log traffic" }).click();
  await card.getByRole("combobox", { name: "How much of it" }).click();
  await page.getByRole("option", { name: "headers" }).click();
  await card.getByRole("combobox", { name: "New file" }).click();
  await page.getByRole("option", { name: "at a size" }).click();
  await card.getByRole("textbox", { name: "MiB of a file", exact: true }).fill("0");
  await card.getByRole("button", { name: "Save", exact: true }).click();
  await card.getByText("A size in MiB is needed").waitFor();
  await card.getByRole("textbox", { name: "MiB of a file", exact: true }).fill("25");
  await save(card);
  await card.getByRole("status").getByText("part of the settings waits for a restart").waitFor();
  await card.getByText("waits for restart").waitFor();
  const status = await bench.weir.get<LogStatus>("/logs");
  assert.deepEqual(status.rotation, { mode: "size", size_mb: 25 });
  assert.deepEqual(status.restart_pending, ["rotation"]);
  await bench.send("/orders");
  await eventually("the events of traffic", async () =>
    ((await fact(card, "Traffic in the log").textContent()) ?? "").startsWith("headers of all hosts, 2 events"),
  );
  assert.match(readFileSync(join(bench.weir.dataDir, "logs", "weir.log"), "utf8"), /< 200 OK GET .*\/orders/);
  await callApi(bench.weir, "PATCH", "/logs", {
    rotation: "daily",
    debug_logging: { enabled: false, level: "summary" },
  });
  await card.getByText("waits for restart").waitFor({ state: "detached" });
  await eventually(
    "the switch follows",
    async () => !(await card.getByRole("switch", { name: "Log traffic" }).isChecked()),
  );
});
