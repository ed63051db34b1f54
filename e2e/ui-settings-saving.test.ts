import assert from "node:assert/strict";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Locator, Page } from "playwright-core";
import { temporaryDirectory } from "@headworks/testkit";
import { callApi, eventually, uiFile } from "./ui-rig.ts";

const journey = uiFile();

/** A section of Settings, by its anchor. */
function section(page: Page, id: string): Locator {
  return page.locator(`#${id}`);
}

async function save(card: Locator): Promise<void> {
  await card.getByRole("button", { name: "Save", exact: true }).click();
  await card.getByRole("button", { name: "Save", exact: true }).waitFor({ state: "detached" });
}

/** The value beside a name. */
function fact(card: Locator, name: string): Locator {
  return card.locator("dt", { hasText: name }).locator("xpath=following-sibling::dd[1]");
}

journey("The mirror is switched on, counts what it writes, and says why it cannot", async (bench) => {
  await using directory = await temporaryDirectory();
  const output = directory.file("site");
  const page = await bench.open("/settings");
  const card = section(page, "mirror");
  await card.getByRole("status").getByText("Off: nothing is written to files").waitFor();
  await card.getByRole("textbox", { name: "Directory of the files" }).fill("relative/folder");
  await card.getByRole("button", { name: "Save", exact: true }).click();
  await card.getByText("must be an absolute path").waitFor();
  await card.getByRole("textbox", { name: "Directory of the files" }).fill(output);
  await card.getByRole("switch", { name: "Write answers to files" }).click();
  await save(card);
  await card.getByRole("status").getByText(`On: answers of all hosts are written to ${output}`).waitFor();
  await bench.send("/orders", "/orders/1");
  await eventually(
    "the number of files",
    async () => (await fact(card, "Files written since start").textContent()) === "2",
  );
  const host = new URL(bench.origin.url).hostname;
  assert.ok(readdirSync(join(output, host, "orders")).length > 0);

  rmSync(output, { recursive: true });
  writeFileSync(output, "a file stands here");
  await bench.send("/orders");
  await card.getByRole("status").getByText("On, but files are being dropped").waitFor();
  await card.getByRole("alert").getByText("a file has its name").waitFor();
  rmSync(output);
  await bench.send("/orders");
  await card.getByRole("status").getByText("On: answers of all hosts").waitFor();
  await eventually("the alarm goes", async () => (await card.getByRole("alert").count()) === 0);
  await callApi(bench.weir, "POST", "/mirror/toggle", { enabled: false });
  await card.getByRole("status").getByText("Off: nothing is written to files").waitFor();
  const isOn = async (): Promise<boolean> =>
    await card.getByRole("switch", { name: "Write answers to files" }).isChecked();
  await eventually("the switch follows", async () => !(await isOn()));
});

journey("A snapshot is saved at the press of a button, and what waits for a restart says so", async (bench) => {
  await bench.send("/orders", "/orders/1", "/orders/2");
  const page = await bench.open("/settings");
  const card = section(page, "auto-save");
  await card.getByRole("status").getByText("Off: snapshots are made only when asked for").waitFor();
  await card.getByRole("button", { name: "Save a snapshot now" }).click();
  await card.getByText(/^Saved 3 entries as session-\d{8}-\d{6}\.har/u).waitFor();
  await eventually("the newest snapshot", async () =>
    /3 entries/u.test((await fact(card, "Newest snapshot").textContent()) ?? ""),
  );
  const path = (await fact(card, "Its file").textContent()) ?? "";
  const har = JSON.parse(readFileSync(path, "utf8")) as { log: { entries: unknown[] } };
  assert.equal(har.log.entries.length, 3);

  await card.getByRole("switch", { name: "Save again and again" }).click();
  await card.getByRole("textbox", { name: "Snapshots kept" }).fill("3");
  await save(card);
  await card.getByRole("status").getByText("Off; it is switched on with the next start").waitFor();
  await card.getByText("waits for restart").waitFor();
  await card.getByText("next cycle").first().waitFor();
  await callApi(bench.weir, "PATCH", "/autosave", { enabled: false, max_backups: 10 });
  await card.getByRole("status").getByText("Off: snapshots are made only when asked for").waitFor();
});
