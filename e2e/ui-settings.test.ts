import assert from "node:assert/strict";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Locator, Page } from "playwright-core";
import type { GrpcSchema, LogStatus } from "@headworks/capture-contract";
import { temporaryDirectory } from "@headworks/testkit";
import { startShop } from "./grpc-peers.ts";
import { callApi, eventually, uiFile, waitForCount } from "./ui-rig.ts";
import type { UiBench } from "./ui-rig.ts";

const journey = uiFile();

async function save(card: Locator): Promise<void> {
  await card.getByRole("button", { name: "Save", exact: true }).click();
  await card.getByRole("button", { name: "Save", exact: true }).waitFor({ state: "detached" });
}

/** The value next to a name. */
function fact(card: Locator, name: string): Locator {
  return card.locator("dt", { hasText: name }).locator("xpath=following-sibling::dd[1]");
}

journey("The log file is rotated by a button, and its last lines are shown as text", async (bench) => {
  const page = await bench.open("/settings");
  const card = page.locator("#logs");
  const directory = join(bench.weir.dataDir, "logs");
  await card
    .getByRole("status")
    .getByText(`Written to ${join(directory, "weir.log")}`)
    .waitFor();
  await card.getByRole("button", { name: "Show last lines" }).click();
  await card.getByRole("region", { name: "Last log lines" }).getByText("Weir has started").waitFor();
  await card.getByRole("button", { name: "Rotate now" }).click();
  await card.getByText(/^Archived as weir\.log\.\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d/u).waitFor();
  assert.equal(readdirSync(directory).filter((name) => name.startsWith("weir.log.")).length, 1);
  await eventually("the count of old files", async () =>
    ((await fact(card, "Archived files").textContent()) ?? "").startsWith("1 of at most 7"),
  );
});

journey("Traffic logging applies at once, and settings that need a restart are marked", async (bench) => {
  const page = await bench.open("/settings");
  const card = page.locator("#logs");
  await card.getByRole("switch", { name: "Log traffic" }).click();
  await card.getByRole("combobox", { name: "Detail level" }).click();
  await page.getByRole("option", { name: "headers" }).click();
  await card.getByRole("combobox", { name: "Rotation" }).click();
  await page.getByRole("option", { name: "by size" }).click();
  await card.getByRole("textbox", { name: "MiB per file", exact: true }).fill("0");
  await card.getByRole("button", { name: "Save", exact: true }).click();
  await card.getByText("Enter a size in MiB").waitFor();
  await card.getByRole("textbox", { name: "MiB per file", exact: true }).fill("25");
  await save(card);
  await card.getByRole("status").getByText("some settings require a restart").waitFor();
  await card.getByText("restart required").waitFor();
  const status = await bench.weir.get<LogStatus>("/logs");
  assert.deepEqual(status.rotation, { mode: "size", size_mb: 25 });
  assert.deepEqual(status.restart_pending, ["rotation"]);
  await bench.send("/orders");
  await eventually("the events of traffic", async () =>
    ((await fact(card, "Logged traffic").textContent()) ?? "").startsWith("headers of all hosts, 2 events"),
  );
  assert.match(readFileSync(join(bench.weir.dataDir, "logs", "weir.log"), "utf8"), /< 200 OK GET .*\/orders/);
  await callApi(bench.weir, "PATCH", "/logs", {
    rotation: "daily",
    debug_logging: { enabled: false, level: "summary" },
  });
  await card.getByText("restart required").waitFor({ state: "detached" });
  await eventually(
    "the switch follows",
    async () => !(await card.getByRole("switch", { name: "Log traffic" }).isChecked()),
  );
});

journey("The mirror is enabled, counts its files, and reports its errors", async (bench) => {
  await using directory = await temporaryDirectory();
  const output = directory.file("site");
  const page = await bench.open("/settings");
  const card = page.locator("#mirror");
  await card.getByRole("status").getByText("Off: no files are written").waitFor();
  await card.getByRole("textbox", { name: "Output directory" }).fill("relative/folder");
  await card.getByRole("button", { name: "Save", exact: true }).click();
  await card.getByText("must be an absolute path").waitFor();
  await card.getByRole("textbox", { name: "Output directory" }).fill(output);
  await card.getByRole("switch", { name: "Write responses to files" }).click();
  await save(card);
  await card.getByRole("status").getByText(`On: writing responses of all hosts to ${output}`).waitFor();
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
  await card.getByRole("status").getByText("On: writing responses of all hosts").waitFor();
  await eventually("the alarm goes", async () => (await card.getByRole("alert").count()) === 0);
  await callApi(bench.weir, "POST", "/mirror/toggle", { enabled: false });
  await card.getByRole("status").getByText("Off: no files are written").waitFor();
  const isOn = async (): Promise<boolean> =>
    await card.getByRole("switch", { name: "Write responses to files" }).isChecked();
  await eventually("the switch follows", async () => !(await isOn()));
});

journey("A snapshot is saved by a button, and settings that need a restart are marked", async (bench) => {
  await bench.send("/orders", "/orders/1", "/orders/2");
  const page = await bench.open("/settings");
  const card = page.locator("#auto-save");
  await card.getByRole("status").getByText("Off: snapshots are saved only on request").waitFor();
  await card.getByRole("button", { name: "Save snapshot now" }).click();
  await card.getByText(/^Saved 3 requests as session-\d{8}-\d{6}\.har/u).waitFor();
  await eventually("the newest snapshot", async () =>
    /3 requests/u.test((await fact(card, "Newest snapshot").textContent()) ?? ""),
  );
  const path = (await fact(card, "File").textContent()) ?? "";
  const har = JSON.parse(readFileSync(path, "utf8")) as { log: { entries: unknown[] } };
  assert.equal(har.log.entries.length, 3);

  await card.getByRole("switch", { name: "Auto-save" }).click();
  await card.getByRole("textbox", { name: "Snapshots to keep" }).fill("3");
  await save(card);
  await card.getByRole("status").getByText("Off; enabled after a restart").waitFor();
  await card.getByText("restart required").waitFor();
  await card.getByText("next interval").first().waitFor();
  await callApi(bench.weir, "PATCH", "/autosave", { enabled: false, max_backups: 10 });
  await card.getByRole("status").getByText("Off: snapshots are saved only on request").waitFor();
});

const ORDERS = `syntax = "proto3"; package shop; import "types.proto";
  service Orders { rpc Get(Order) returns (Order); }`;
const TYPES = 'syntax = "proto3"; package shop; message Order { int32 id = 1; }';

const file = (name: string, text: string) => ({ name, mimeType: "text/plain", buffer: Buffer.from(text) });

journey("gRPC schemas are added from files and from a server, and removed", async (bench) => {
  await using shop = await startShop();
  const page = await bench.open("/settings#grpc-schemas");
  const files = page.getByLabel("Schema files");
  await files.setInputFiles([file("orders.proto", ORDERS)]);
  await page.getByRole("alert").filter({ hasText: "imports types.proto, which was not given" }).waitFor();
  await files.setInputFiles([file("orders.proto", ORDERS), file("types.proto", TYPES)]);
  const list = page.getByRole("list", { name: "Schemas" });
  const uploaded = list.getByRole("listitem").filter({ hasText: "orders.proto" }).first();
  await uploaded.waitFor();
  await uploaded.getByText("shop.Orders", { exact: true }).click();
  await uploaded.getByText("/shop.Orders/Get").waitFor();

  const server = page.getByLabel("From a server with reflection");
  await server.fill("http://127.0.0.1:9");
  await page.getByRole("button", { name: "Load", exact: true }).click();
  await page.getByRole("form", { name: "Schema from a server" }).getByRole("alert").waitFor();
  await server.fill(`http://127.0.0.1:${shop.port}`);
  await page.getByRole("button", { name: "Load", exact: true }).click();
  await list.getByText("shop.v1.Orders", { exact: true }).waitFor();
  const known = await bench.weir.get<GrpcSchema[]>("/grpc/schemas");
  assert.deepEqual(
    known.map(({ source }) => source),
    ["reflection", "proto"],
  );

  for (const { name } of known) {
    await page.getByRole("button", { name: `Remove ${name}` }).click();
    await page.getByRole("button", { name: "Remove", exact: true }).click();
    await waitForCount(page.getByRole("button", { name: `Remove ${name}` }), 0);
  }
  assert.deepEqual(await bench.weir.get("/grpc/schemas"), []);
});

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

/** The text of the file that a button downloads. */
async function saved(page: Page, button: string): Promise<string> {
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: button, exact: true }).click(),
  ]);
  return await readFile(await download.path(), "utf8");
}

async function openImport(page: Page): Promise<Locator> {
  await page.getByRole("group", { name: "Export and import" }).getByRole("button", { name: "Import…" }).click();
  const dialog = page.getByRole("dialog", { name: "Import rules" });
  await dialog.waitFor();
  return dialog;
}

async function choose(dialog: Locator, text: string): Promise<void> {
  await dialog
    .getByLabel("File", { exact: true })
    .setInputFiles({ name: "rules.json", mimeType: "application/json", buffer: Buffer.from(text) });
}

/** The table cells of a rule kind: added, updated, removed, unchanged. */
async function counts(dialog: Locator, kind: string): Promise<readonly string[]> {
  const line = dialog
    .getByRole("table", { name: "Rules by kind" })
    .getByRole("row", { name: new RegExp(`^${kind}`, "u") });
  await line.waitFor();
  return await line.getByRole("cell").allInnerTexts();
}

journey("All rules are exported to a file, and imported into a Weir with other rules", async (bench) => {
  await callApi(bench.weir, "POST", "/rewrites", rewrite("First", "^/first"));
  await callApi(bench.weir, "POST", "/rewrites", rewrite("Second", "^/second"));
  const page = await bench.open("/settings");
  const file = await saved(page, "Export rules");
  assert.equal((JSON.parse(file) as { readonly rewrites: readonly unknown[] }).rewrites.length, 2);
  await clearRewrites(bench);
  await callApi(bench.weir, "POST", "/rewrites", rewrite("Third", "^/third"));

  const dialog = await openImport(page);
  await choose(dialog, file);
  await dialog.getByRole("button", { name: "Preview" }).click();
  assert.deepEqual(await counts(dialog, "Rewrites"), ["2", "–", "–", "–"]);
  assert.deepEqual(await rewriteNames(bench), ["Third"]);
  // Another import mode requires another preview.
  await dialog.getByRole("radio", { name: "Replace" }).click();
  await dialog.getByRole("button", { name: "Preview" }).click();
  assert.deepEqual(await counts(dialog, "Rewrites"), ["2", "–", "1", "–"]);
  assert.deepEqual(await rewriteNames(bench), ["Third"]);
  await dialog.getByRole("button", { name: "Import and remove" }).click();
  await waitForCount(dialog, 0);
  assert.deepEqual(await rewriteNames(bench), ["First", "Second"]);
  await clearRewrites(bench);
});

journey("A file with errors is refused with the position of each, and changes nothing", async (bench) => {
  const page = await bench.open("/settings");
  const dialog = await openImport(page);
  await choose(dialog, "{");
  await dialog.getByText(/Not valid JSON/u).waitFor();
  assert.equal(await dialog.getByRole("button", { name: "Preview" }).isDisabled(), true);
  const wrong = { ...rewrite("Broken", "("), id: "11111111-1111-4111-8111-111111111111", enabled: true };
  await choose(dialog, JSON.stringify({ version: 1, rewrites: [wrong], focus: {}, options: [] }));
  await dialog.getByRole("button", { name: "Preview" }).click();
  const refusal = dialog.getByRole("alert");
  await refusal.getByText("options", { exact: true }).waitFor();
  await choose(dialog, JSON.stringify({ version: 1, rewrites: [wrong], focus: {} }));
  await dialog.getByRole("button", { name: "Preview" }).click();
  await refusal
    .getByText(/^rewrites\/0/u)
    .first()
    .waitFor();
  await choose(dialog, JSON.stringify({ version: 99, rewrites: [] }));
  await dialog.getByRole("button", { name: "Preview" }).click();
  await refusal.getByText(/newer Weir/u).waitFor();
  await dialog.getByRole("button", { name: "Cancel" }).click();
  assert.deepEqual(await rewriteNames(bench), []);
});

journey("Settings and rules are imported from one file, with a preview of changed settings", async (bench) => {
  await callApi(bench.weir, "PATCH", "/config", { max_requests: 2345 });
  await callApi(bench.weir, "POST", "/rewrites", rewrite("Kept", "^/kept"));
  const page = await bench.open("/settings");
  const file = await saved(page, "Export rules and settings");
  await callApi(bench.weir, "PATCH", "/config", { max_requests: 9999 });
  await clearRewrites(bench);
  const dialog = await openImport(page);
  await choose(dialog, file);
  await dialog.getByRole("button", { name: "Preview" }).click();
  await dialog.getByText("Changed settings: Requests to keep.").waitFor();
  assert.deepEqual(await counts(dialog, "Rewrites"), ["1", "–", "–", "–"]);
  await dialog.getByRole("button", { name: "Import", exact: true }).click();
  await waitForCount(dialog, 0);
  assert.equal((await bench.weir.get<{ readonly max_requests: number }>("/config")).max_requests, 2345);
  assert.deepEqual(await rewriteNames(bench), ["Kept"]);
  await clearRewrites(bench);
});

journey("A snapshot of all rules is saved and restored", async (bench) => {
  const page = await bench.open("/settings");
  const part = page.getByRole("group", { name: "Rules snapshot" });
  const confirm = page.getByRole("dialog");
  await callApi(bench.weir, "POST", "/rewrites", rewrite("Then", "^/then"));
  await part.getByRole("button", { name: "Save snapshot" }).click();
  await confirm.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText("Rules snapshot saved").waitFor();
  await clearRewrites(bench);
  await callApi(bench.weir, "POST", "/rewrites", rewrite("Now", "^/now"));
  await part.getByRole("button", { name: "Restore snapshot" }).click();
  await confirm.getByRole("button", { name: "Cancel" }).click();
  assert.deepEqual(await rewriteNames(bench), ["Now"]);
  await part.getByRole("button", { name: "Restore snapshot" }).click();
  await confirm.getByRole("button", { name: "Restore" }).click();
  await page.getByText("Rules snapshot restored").waitFor();
  assert.deepEqual(await rewriteNames(bench), ["Then"]);
  await clearRewrites(bench);
});
