import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import type { Locator, Page } from "playwright-core";
import { callApi, uiFile, waitForCount } from "./ui-rig.ts";
import type { UiBench } from "./ui-rig.ts";

const journey = uiFile();

const rewrite = (name: string, path: string) => ({
  name,
  condition: { type: "path_pattern", pattern: path },
  rewrites: [{ type: "set_status", code: 299 }],
  direction: "response",
});

async function rewriteNames(bench: UiBench): Promise<readonly string[]> {
  const rules = await bench.weir.get<readonly { readonly name: string }[]>("/rewrites");
  return rules.map(({ name }) => name).toSorted();
}

async function clearRewrites(bench: UiBench): Promise<void> {
  for (const { id } of await bench.weir.get<readonly { readonly id: string }[]>("/rewrites")) {
    await callApi(bench.weir, "DELETE", `/rewrites/${id}`);
  }
}

/** The text of the file that a button saves. */
async function saved(page: Page, button: string): Promise<string> {
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: button }).click(),
  ]);
  return await readFile(await download.path(), "utf8");
}

async function openImport(page: Page): Promise<Locator> {
  await page.getByRole("group", { name: "As a file" }).getByRole("button", { name: "Import…" }).click();
  const dialog = page.getByRole("dialog", { name: "Import rules" });
  await dialog.waitFor();
  return dialog;
}

async function choose(dialog: Locator, text: string): Promise<void> {
  await dialog
    .getByLabel("File", { exact: true })
    .setInputFiles({ name: "rules.json", mimeType: "application/json", buffer: Buffer.from(text) });
}

/** The cells of a kind of rules: added, updated, removed, unchanged. */
async function counts(dialog: Locator, kind: string): Promise<readonly string[]> {
  const line = dialog
    .getByRole("table", { name: "Rules by kind" })
    .getByRole("row", { name: new RegExp(`^${kind}`, "u") });
  await line.waitFor();
  return await line.getByRole("cell").allInnerTexts();
}

journey("All rules leave as a file, and come back into a Weir that has others", async (bench) => {
  await callApi(bench.weir, "POST", "/rewrites", rewrite("First", "^/first"));
  await callApi(bench.weir, "POST", "/rewrites", rewrite("Second", "^/second"));
  const page = await bench.open("/settings");
  const file = await saved(page, "Export the rules");
  assert.equal((JSON.parse(file) as { readonly rewrites: readonly unknown[] }).rewrites.length, 2);
  await clearRewrites(bench);
  await callApi(bench.weir, "POST", "/rewrites", rewrite("Third", "^/third"));

  const dialog = await openImport(page);
  await choose(dialog, file);
  await dialog.getByRole("button", { name: "Show what changes" }).click();
  assert.deepEqual(await counts(dialog, "Rewrites"), ["2", "–", "–", "–"]);
  assert.deepEqual(await rewriteNames(bench), ["Third"]);
  // Another way to take it in asks for another look.
  await dialog.getByRole("radio", { name: "Replace" }).click();
  await dialog.getByRole("button", { name: "Show what changes" }).click();
  assert.deepEqual(await counts(dialog, "Rewrites"), ["2", "–", "1", "–"]);
  assert.deepEqual(await rewriteNames(bench), ["Third"]);
  await dialog.getByRole("button", { name: "Import and remove" }).click();
  await waitForCount(dialog, 0);
  assert.deepEqual(await rewriteNames(bench), ["First", "Second"]);
  await clearRewrites(bench);
});

journey("A file with mistakes is refused with the place of each, and changes nothing", async (bench) => {
  const page = await bench.open("/settings");
  const dialog = await openImport(page);
  await choose(dialog, "{");
  await dialog.getByText(/This is not JSON/u).waitFor();
  assert.equal(await dialog.getByRole("button", { name: "Show what changes" }).isDisabled(), true);
  const wrong = { ...rewrite("Broken", "("), id: "11111111-1111-4111-8111-111111111111", enabled: true };
  await choose(dialog, JSON.stringify({ version: 1, rewrites: [wrong], focus: {}, wishes: [] }));
  await dialog.getByRole("button", { name: "Show what changes" }).click();
  const refusal = dialog.getByRole("alert");
  await refusal.getByText("wishes", { exact: true }).waitFor();
  await choose(dialog, JSON.stringify({ version: 1, rewrites: [wrong], focus: {} }));
  await dialog.getByRole("button", { name: "Show what changes" }).click();
  await refusal
    .getByText(/^rewrites\/0/u)
    .first()
    .waitFor();
  await choose(dialog, JSON.stringify({ version: 99, rewrites: [] }));
  await dialog.getByRole("button", { name: "Show what changes" }).click();
  await refusal.getByText(/newer Weir/u).waitFor();
  await dialog.getByRole("button", { name: "Cancel" }).click();
  assert.deepEqual(await rewriteNames(bench), []);
});

journey("Settings and rules come back from one file, and say which settings change", async (bench) => {
  await callApi(bench.weir, "PATCH", "/config", { max_requests: 2345 });
  await callApi(bench.weir, "POST", "/rewrites", rewrite("Kept", "^/kept"));
  const page = await bench.open("/settings");
  const file = await saved(page, "Export rules and settings");
  await callApi(bench.weir, "PATCH", "/config", { max_requests: 9999 });
  await clearRewrites(bench);
  const dialog = await openImport(page);
  await choose(dialog, file);
  await dialog.getByRole("button", { name: "Show what changes" }).click();
  await dialog.getByText("Settings that change: Entries kept.").waitFor();
  assert.deepEqual(await counts(dialog, "Rewrites"), ["1", "–", "–", "–"]);
  await dialog.getByRole("button", { name: "Import", exact: true }).click();
  await waitForCount(dialog, 0);
  assert.equal((await bench.weir.get<{ readonly max_requests: number }>("/config")).max_requests, 2345);
  assert.deepEqual(await rewriteNames(bench), ["Kept"]);
  await clearRewrites(bench);
});

journey("A state of all rules is put aside, and brought back", async (bench) => {
  const page = await bench.open("/settings");
  const part = page.getByRole("group", { name: "A state to come back to" });
  const confirm = page.getByRole("dialog");
  await callApi(bench.weir, "POST", "/rewrites", rewrite("Then", "^/then"));
  await part.getByRole("button", { name: "Save this state" }).click();
  await confirm.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText("The rules are saved").waitFor();
  await clearRewrites(bench);
  await callApi(bench.weir, "POST", "/rewrites", rewrite("Now", "^/now"));
  await part.getByRole("button", { name: "Bring back the saved state" }).click();
  await confirm.getByRole("button", { name: "Cancel" }).click();
  assert.deepEqual(await rewriteNames(bench), ["Now"]);
  await part.getByRole("button", { name: "Bring back the saved state" }).click();
  await confirm.getByRole("button", { name: "Bring back" }).click();
  await page.getByText("The saved rules are back").waitFor();
  assert.deepEqual(await rewriteNames(bench), ["Then"]);
  await clearRewrites(bench);
});
