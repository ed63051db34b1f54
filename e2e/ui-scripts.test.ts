import assert from "node:assert/strict";
import { gunzipSync } from "node:zlib";
import type { Locator, Page } from "playwright-core";
import { barrierCheck } from "./ui-barriers.ts";
import { callApi, eventually, openRow, row, uiFile, visit, waitForCount } from "./ui-rig.ts";
import type { UiBench } from "./ui-rig.ts";

const journey = uiFile();

interface Stored {
  readonly id: string;
  readonly name: string;
  readonly source: string;
  readonly hooks: readonly string[];
  readonly enabled: boolean;
  readonly priority: number;
}

const scripts = async ({ weir }: UiBench): Promise<readonly Stored[]> => await weir.get<readonly Stored[]>("/scripts");

async function create({ weir }: UiBench, script: Readonly<Record<string, unknown>>): Promise<Stored> {
  const { script: stored } = (await callApi(weir, "POST", "/scripts", script)) as { readonly script: Stored };
  return stored;
}

async function clearScripts(bench: UiBench): Promise<void> {
  for (const { id } of await scripts(bench)) await callApi(bench.weir, "DELETE", `/scripts/${id}`);
}

const codeOf = (page: Page): Locator => page.getByRole("textbox", { name: "Source", exact: true });

const hasFocus = async (element: Locator): Promise<boolean> =>
  (await element.and(element.page().locator(":focus")).count()) === 1;

/** Replaces the whole source as a user does. */
async function writeSource(page: Page, source: string): Promise<void> {
  await codeOf(page).click();
  await page.keyboard.press("Control+A");
  await page.keyboard.insertText(source);
}

const CHEAPER = `function onResponse(request, response) {
  const orders = response.json();
  orders[0].price = 1.25;
  console.log("cheaper", orders.length);
  response.setJson(orders);
}
`;

for (const colorScheme of ["light", "dark"] as const) {
  journey(`A script is created from a template, corrected, saved, tested and run (${colorScheme})`, async (bench) => {
    await bench.send("/orders?tried");
    const page = await bench.open("/scripts", { colorScheme, reducedMotion: "reduce" });
    await page.getByText("No scripts").waitFor();
    await page.getByRole("button", { name: "Templates" }).click();
    const dialog = page.getByRole("dialog", { name: "New from template" });
    const templates = dialog.getByRole("list", { name: "Templates" }).getByRole("button");
    await waitForCount(templates, 13);
    await templates.filter({ hasText: "Log Requests" }).click();
    await dialog.getByRole("textbox", { name: "Source of Log Requests" }).getByText("console").first().waitFor();
    await dialog.getByRole("button", { name: "Use template" }).click();
    const editor = page.getByRole("form", { name: "New script" });
    await editor.getByText(/^Declares onRequest/u).waitFor();

    // An error is shown in place, and refused.
    await writeSource(page, "function onResponse(request, response) {\n  const orders = ;\n}\n");
    const status = editor.getByRole("status").filter({ hasText: /line 2/iu });
    await status.waitFor();
    await page.locator(".cm-line").nth(1).locator(".cm-lintRange-error").waitFor();
    await page.keyboard.press("Control+S");
    await editor
      .getByRole("status")
      .filter({ hasText: /source|line 2/iu })
      .waitFor();
    assert.deepEqual(await scripts(bench), []);

    await writeSource(page, CHEAPER);
    await editor.getByText("Declares onResponse", { exact: true }).waitFor();
    await waitForCount(page.locator(".cm-lintRange-error"), 0);
    await editor.getByRole("tab", { name: "Settings" }).click();
    await editor.getByRole("textbox", { name: "Name" }).fill("");
    await editor.getByRole("tab", { name: "Test" }).click();
    await codeOf(page).click();
    await page.keyboard.press("Control+S");
    await editor.getByText("Enter a name").waitFor();
    await editor.getByRole("textbox", { name: "Name" }).fill("Cheaper gates");
    assert.equal(await editor.getByRole("checkbox", { name: /^Response/u }).isChecked(), true);
    assert.equal(await editor.getByRole("checkbox", { name: /^Request/u }).isChecked(), false);
    await codeOf(page).click();
    await page.keyboard.press("Control+S");
    const saved = page.getByRole("form", { name: "Script Cheaper gates" });
    await saved.waitFor();
    const [stored] = await scripts(bench);
    assert.deepEqual([stored?.name, stored?.source, stored?.hooks], ["Cheaper gates", CHEAPER, ["on_response"]]);
    // The editor stays, with cursor and undo history.
    assert.equal(await hasFocus(codeOf(page)), true);

    await saved.getByRole("tab", { name: "Test" }).click();
    await saved.getByRole("radio", { name: "Captured request" }).click();
    await saved.getByRole("combobox", { name: "Captured request" }).click();
    await page.getByRole("option", { name: /tried/u }).click();
    await saved.getByRole("button", { name: "Test", exact: true }).click();
    const result = saved.getByRole("region", { name: "Test result" });
    await result.getByText("The script changes the message.").waitFor();
    const change = result.getByRole("group", { name: "Changes to the response" });
    await change.getByText('"price": 1.25,').waitFor();
    await change.getByText('"price": 12.5,').waitFor();
    await result.getByRole("group", { name: "Console" }).getByText("cheaper 2").waitFor();

    await saved.getByRole("tab", { name: "History" }).click();
    await saved.getByText("No runs yet").waitFor();
    const response = await bench.client.fetch(`${bench.origin.url}/orders`);
    assert.match(gunzipSync(response.body).toString(), /"price":1\.25/u);
    await bench.client.fetch(`${bench.origin.url}/missing`);
    const runs = saved.getByRole("list", { name: "Runs" });
    await waitForCount(runs.locator("> li"), 2);
    const newest = runs.locator("> li").first();
    await newest.getByText("error", { exact: true }).waitFor();
    await newest.getByText("SyntaxError").waitFor();
    await page.getByRole("list", { name: "Scripts" }).getByText("last run failed").waitFor();
    await runs.locator("> li").nth(1).getByText("cheaper 2").waitFor();
    await newest.getByRole("link", { name: "Request" }).click();
    await page
      .getByRole("region", { name: "Request details" })
      .getByRole("heading", { name: /missing/u })
      .waitFor();
    await page.goBack();
    await saved.getByRole("tab", { name: "History" }).click();
    await saved.getByRole("button", { name: "Clear history" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Clear" }).click();
    await saved.getByText("No runs yet").waitFor();
    await clearScripts(bench);
  });
}

journey(
  "Scripts are reordered with pointer and keyboard, switched, duplicated, deleted and restored",
  async (bench) => {
    for (const name of ["First", "Second", "Third"]) await create(bench, { name, source: `// ${name}` });
    const page = await bench.open("/scripts");
    const list = page.getByRole("list", { name: "Scripts" });
    const items = list.getByRole("listitem");
    const names = async (): Promise<readonly string[]> => (await scripts(bench)).map(({ name }) => name);
    await waitForCount(items, 3);
    await items.nth(2).dragTo(items.nth(0));
    await eventually("the dragged one is first", async () => (await names()).join() === "Third,First,Second");
    await items.filter({ hasText: "Third" }).getByRole("button", { name: "Third", exact: false }).first().focus();
    await page.keyboard.press("Alt+ArrowDown");
    await eventually("it moved down", async () => (await names()).join() === "First,Third,Second");
    await eventually("it has the focus", async () => (await page.locator(":focus").innerText()).includes("Third"));
    await page.keyboard.press("Alt+ArrowDown");
    await eventually("it moved to the end", async () => (await names()).join() === "First,Second,Third");
    await page.getByRole("button", { name: "More actions for Second" }).click();
    await page.getByRole("menuitem", { name: "Move up" }).click();
    await eventually("it moved up", async () => (await names()).join() === "Second,First,Third");

    await page.getByRole("switch", { name: "Enable First" }).click();
    await eventually("it is off", async () => (await scripts(bench))[1]?.enabled === false);
    await page.getByRole("button", { name: "More actions for First" }).click();
    await page.getByRole("menuitem", { name: "Duplicate" }).click();
    await page.getByRole("switch", { name: "Enable First (copy)" }).waitFor();
    await page.getByRole("button", { name: "More actions for Second" }).click();
    await page.getByRole("menuitem", { name: "Delete" }).click();
    await waitForCount(items, 3);
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByRole("switch", { name: "Enable Second" }).waitFor();
    await clearScripts(bench);
  },
);

journey("An unsaved source is kept while other scripts and screens are open, and is asked about", async (bench) => {
  const { id } = await create(bench, { name: "First", source: "// first" });
  await create(bench, { name: "Second", source: "// second" });
  const page = await bench.open(`/scripts?id=${id}`);
  const list = page.getByRole("list", { name: "Scripts" });
  const says = async (text: string): Promise<void> => await codeOf(page).getByText(text, { exact: true }).waitFor();
  await says("// first");
  await writeSource(page, "// half written");
  await list.getByRole("button", { name: /^Second/u }).click();
  await says("// second");
  await list.getByText("unsaved changes").waitFor();
  await page.getByRole("link", { name: "Sessions", exact: true }).click();
  await page.getByRole("heading", { name: "Sessions", level: 1 }).waitFor();
  await page.goBack();
  await list.getByRole("button", { name: /^First/u }).click();
  await says("// half written");
  // A change by another program is not overwritten without a warning.
  await callApi(bench.weir, "PUT", `/scripts/${id}`, { source: "// elsewhere" });
  const alert = page.getByRole("alert").filter({ hasText: "was changed elsewhere" });
  await alert.waitFor();
  await says("// half written");
  const dialogs: string[] = [];
  page.removeAllListeners("dialog");
  page.on("dialog", (dialog) => {
    dialogs.push(dialog.type());
    void dialog.dismiss();
  });
  await page.evaluate("location.reload()");
  await eventually("the browser asks", () => dialogs.includes("beforeunload"));
  await alert.getByRole("button", { name: "Discard my changes" }).click();
  await says("// elsewhere");
  await waitForCount(page.getByRole("button", { name: "Discard", exact: true }), 0);
  await clearScripts(bench);
});

journey("The editor completes the script API, searches, and is left with the keyboard", async (bench) => {
  const page = await bench.open("/scripts");
  await page.getByRole("button", { name: "New script" }).click();
  const name = page.getByRole("textbox", { name: "Name" });
  await eventually("the name has the focus", async () => await hasFocus(name));
  const code = codeOf(page);
  await code.click();
  await page.keyboard.press("Control+A");
  await page.keyboard.type("function onResponse(sent, received) { received.stat");
  const completions = page.getByRole("listbox", { name: "Completions" });
  await completions.getByRole("option", { name: /^statusCode/u }).waitFor();
  await completions.getByRole("option", { name: /^statusMessage/u }).waitFor();
  await page.keyboard.press("Enter");
  await code.getByText("received.statusCode").waitFor();
  await page.keyboard.type("; sent.headers.getA");
  await completions.getByRole("option", { name: /^getAll/u }).waitFor();
  await page.keyboard.press("Escape");
  await waitForCount(completions, 0);
  await page.keyboard.press("Control+F");
  await page.getByRole("textbox", { name: "Find" }).pressSequentially("statusCode");
  await waitForCount(page.locator(".cm-searchMatch"), 1);
  await page.keyboard.press("Escape");
  await waitForCount(page.getByRole("textbox", { name: "Find" }), 0);
  // Tab indents; after Escape it goes on to the panels.
  await page.keyboard.press("Tab");
  assert.equal(await hasFocus(code), true);
  await page.keyboard.press("Escape");
  assert.equal(await hasFocus(code), false);
  await page.keyboard.press("Tab");
  await eventually("the next element has the focus", async () => (await page.locator(":focus").count()) === 1);
  assert.equal(await hasFocus(code), false);
  await page.getByRole("form", { name: "New script" }).waitFor();
});

journey("A script for a captured request runs for similar ones, and the entry shows its runs", async (bench) => {
  await bench.send("/orders?page=1");
  const page = await bench.open("/traffic");
  await row(page, "page=1").click({ button: "right" });
  await page.getByRole("menuitem", { name: "Script for this request" }).click();
  const editor = page.getByRole("form", { name: "New script" });
  await editor.getByRole("tab", { name: "Settings" }).click();
  const value = async (label: string): Promise<string> =>
    await editor.getByRole("textbox", { name: label, exact: true }).inputValue();
  assert.deepEqual(
    [await value("Method"), await value("Host"), await value("Path and query")],
    ["GET", "127.0.0.1", "/orders?*"],
  );
  await codeOf(page).getByText("For requests like GET").waitFor();
  await writeSource(
    page,
    'function onRequest(request) {\n  request.headers["X-Seen"] = "yes";\n  console.warn("seen");\n}',
  );
  await editor.getByRole("button", { name: "Create" }).click();
  await page.getByRole("form", { name: /^Script/u }).waitFor();
  await bench.send("/orders?page=2", "/missing");
  await visit(page, "/traffic");
  const pane = await openRow(page, "page=2");
  await pane.getByRole("tab", { name: "Overview" }).click();
  const runs = pane.getByRole("list", { name: "Scripts" });
  await runs.getByText("set header X-Seen: yes").waitFor();
  await runs.getByText(/seen$/u).last().waitFor();
  await openRow(page, "/missing");
  await pane.getByRole("heading", { name: "Summary" }).waitFor();
  await waitForCount(runs, 0);
  await openRow(page, "page=2");
  await runs.getByRole("link", { name: /^Script GET/u }).click();
  await page.getByRole("form", { name: /^Script/u }).waitFor();
  await clearScripts(bench);
});

journey("The Scripts screen has no serious accessibility violation, in either theme", async (bench) => {
  const { id } = await create(bench, { name: "Failing", source: "function onRequest() { throw new Error('no'); }" });
  await create(bench, { name: "Off", source: "// nothing", enabled: false });
  await bench.send("/orders");
  const page = await bench.open("/scripts", { reducedMotion: "reduce", viewport: { width: 1440, height: 900 } });
  const { found, check } = barrierCheck(page);
  await page.getByText("last run failed").waitFor();
  await check("list");
  await visit(page, `/scripts?id=${id}`);
  await codeOf(page).getByText("throw").waitFor();
  await page.getByRole("button", { name: "Test", exact: true }).click();
  await page.getByRole("region", { name: "Test result" }).waitFor();
  await check("test");
  await page.getByRole("tab", { name: "History" }).click();
  await page.getByRole("list", { name: "Runs" }).waitFor();
  await check("history", "form");
  await page.getByRole("tab", { name: "Settings" }).click();
  await check("settings", "form");
  await writeSource(page, "function (");
  await page.locator(".cm-lintRange-error").waitFor();
  await page.keyboard.press("Control+F");
  await page.getByRole("textbox", { name: "Find" }).waitFor();
  await check("source with an error", "form");
  await page.getByRole("button", { name: "Discard", exact: true }).click();
  await page.getByRole("button", { name: "Templates" }).click();
  await page.getByRole("textbox", { name: /^Source of/u }).waitFor();
  await check("templates", "[role=dialog]");
  assert.deepEqual(found, {});
  await clearScripts(bench);
});
