import assert from "node:assert/strict";
import type { Locator, Page } from "playwright-core";
import { callApi, eventually, openRow, uiFile } from "./ui-rig.ts";
import type { UiBench } from "./ui-rig.ts";

const journey = uiFile();

interface Stored {
  readonly id: string;
  readonly name: string | null;
}

const REQUEST = { method: "GET", url: "http://shop.example/orders", headers_list: [], body: null };

/** The editors beside a list, and how another program changes their rule. */
const EDITORS = [
  {
    screen: "rewrites",
    api: "/rewrites",
    body: (name: string) => ({
      name,
      condition: { type: "host", pattern: "shop.example" },
      direction: "request",
      rewrites: [{ type: "set_header", name: "X-From", value: name }],
    }),
  },
  {
    screen: "mocks",
    api: "/mocks",
    body: (name: string) => ({
      name,
      condition: { type: "host", pattern: "shop.example" },
      response_config: { type: "single", response: { status_code: 200, headers: {}, body: name } },
    }),
  },
  { screen: "replay", api: "/replay/saved", body: (name: string) => ({ name, request: REQUEST }) },
] as const;

const nameField = (page: Page): Locator => page.getByRole("textbox", { name: "Name", exact: true }).first();

/** The value of a field, once it is the expected one. */
async function waitForValue(field: Locator, value: string): Promise<void> {
  await eventually(`the field says ${value}`, async () => (await field.inputValue().catch(() => "")) === value);
}

async function stored({ weir }: UiBench, api: string, id: string): Promise<Stored> {
  return await weir.get<Stored>(`${api}/${id}`);
}

for (const { screen, api, body } of EDITORS) {
  journey(`Unsaved text in an editor of ${screen} is kept while other screens are open`, async (bench) => {
    const { id } = (await callApi(bench.weir, "POST", api, body("First"))) as Stored;
    const page = await bench.open(`/${screen}?id=${id}`);
    await waitForValue(nameField(page), "First");
    await nameField(page).fill("Half writ");
    await page.getByRole("link", { name: "Sessions", exact: true }).click();
    await page.getByRole("heading", { name: "Sessions", level: 1 }).waitFor();
    await page.goBack();
    await waitForValue(nameField(page), "Half writ");
    await page.getByRole("button", { name: "Discard", exact: true }).click();
    await waitForValue(nameField(page), "First");
    assert.equal(await page.getByRole("button", { name: "Discard", exact: true }).count(), 0);
  });

  journey(
    `A change by another program neither discards unsaved text in ${screen} nor is overwritten without a warning`,
    async (bench) => {
      const { id } = (await callApi(bench.weir, "POST", api, body("First"))) as Stored;
      const page = await bench.open(`/${screen}?id=${id}`);
      await waitForValue(nameField(page), "First");
      // Without edits, the editor shows the stored rule.
      await callApi(bench.weir, "PUT", `${api}/${id}`, body("Second"));
      await waitForValue(nameField(page), "Second");
      await nameField(page).fill("Mine");
      await callApi(bench.weir, "PUT", `${api}/${id}`, body("Third"));
      const alert = page.getByRole("alert").filter({ hasText: "was changed elsewhere" });
      await alert.waitFor();
      await waitForValue(nameField(page), "Mine");
      await alert.getByRole("button", { name: "Discard my changes" }).click();
      await waitForValue(nameField(page), "Third");
      await nameField(page).fill("Mine after all");
      await page.getByRole("button", { name: "Save", exact: true }).click();
      await eventually("it is saved", async () => (await stored(bench, api, id)).name === "Mine after all");
      await waitForValue(nameField(page), "Mine after all");
      await eventually(
        "nothing is unsaved",
        async () => (await page.getByText("Discard", { exact: true }).count()) === 0,
      );
      assert.equal(await alert.count(), 0);
    },
  );

  journey(`Unsaved text in ${screen} can be saved after the rule was deleted by another program`, async (bench) => {
    const { id } = (await callApi(bench.weir, "POST", api, body("First"))) as Stored;
    const page = await bench.open(`/${screen}?id=${id}`);
    await waitForValue(nameField(page), "First");
    await nameField(page).fill("Saved again");
    await callApi(bench.weir, "DELETE", `${api}/${id}`);
    await page.getByRole("alert").filter({ hasText: "was deleted elsewhere" }).waitFor();
    await waitForValue(nameField(page), "Saved again");
    await page.getByRole("button", { name: /^(?:Create|Save)$/u }).click();
    await eventually("it is made again", async () =>
      (await bench.weir.get<readonly Stored[]>(api)).some(({ name }) => name === "Saved again"),
    );
  });
}

/** The dialogs that edit something stored. */
const WINDOWS = [
  {
    screen: "breakpoints?part=rules",
    api: "/breakpoints",
    body: (name: string) => ({ name, condition: { type: "host", pattern: "shop.example" }, direction: "request" }),
    open: /^Edit/u,
    field: "Name",
    member: "name",
  },
  {
    screen: "blocklist",
    api: "/blocklist",
    body: (note: string) => ({ pattern: "shop.example", note, enabled: false, response_body: note }),
    open: "Edit shop.example",
    field: "Note",
    member: "note",
  },
] as const;

for (const { screen, api, body, open, field, member } of WINDOWS) {
  journey(`A dialog of ${screen} notices that its rule was changed or deleted by another program`, async (bench) => {
    const list = async () => await bench.weir.get<readonly Readonly<Record<string, unknown>>[]>(api);
    const { id } = (await callApi(bench.weir, "POST", api, body("First"))) as Stored;
    const page = await bench.open(`/${screen}`);
    await page.getByRole("link", { name: "Sessions", exact: true }).click();
    await page.goBack();
    await page.getByRole("button", { name: open }).click();
    const dialog = page.getByRole("dialog");
    const text = dialog.getByRole("textbox", { name: field, exact: true });
    await waitForValue(text, "First");
    // Without edits, the dialog shows the stored rule, and closes without a question.
    await callApi(bench.weir, "PUT", `${api}/${id}`, body("Second"));
    await waitForValue(text, "Second");
    await text.focus();
    await callApi(bench.weir, "PUT", `${api}/${id}`, body("Third"));
    await waitForValue(text, "Third");
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    await page.getByRole("button", { name: open }).click();
    await waitForValue(text, "Third");
    await text.fill("Mine");
    await callApi(bench.weir, "PUT", `${api}/${id}`, body("Fourth"));
    const alert = dialog.getByRole("alert");
    await alert.filter({ hasText: "was changed elsewhere" }).waitFor();
    await waitForValue(text, "Mine");
    await alert.getByRole("button", { name: "Discard my changes" }).click();
    await waitForValue(text, "Fourth");
    // Edits are kept while another screen is open.
    await text.fill("Mine after all");
    await page.goForward();
    await page.goBack();
    await page.getByRole("button", { name: open }).click();
    await waitForValue(text, "Mine after all");
    await callApi(bench.weir, "DELETE", `${api}/${id}`);
    await alert.filter({ hasText: "was deleted elsewhere" }).waitFor();
    await waitForValue(text, "Mine after all");
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.waitFor({ state: "detached" });
    const [made, ...others] = await list();
    assert.deepEqual([made?.[member], made?.["enabled"], others], ["Mine after all", api === "/breakpoints", []]);
    await callApi(bench.weir, "DELETE", `${api}/${String(made?.["id"])}`);
  });
}

journey("A dialog with unsaved drafts asks before it closes, and one without does not", async (bench) => {
  const page = await bench.open("/rewrites");
  const dialogs: string[] = [];
  page.removeAllListeners("dialog");
  page.on("dialog", (dialog) => {
    dialogs.push(dialog.type());
    void dialog.accept();
  });
  await page.getByRole("button", { name: "New rewrite" }).click();
  await nameField(page).pressSequentially("Unsaved");
  await page.reload();
  assert.deepEqual(dialogs, ["beforeunload"]);
  await page.getByRole("button", { name: "New rewrite" }).click();
  await page.reload();
  assert.deepEqual(dialogs, ["beforeunload"]);
});

journey("Escape or a click beside a dialog does not discard its edits", async (bench) => {
  const page = await bench.open("/blocklist");
  await page.getByRole("button", { name: "Block host" }).first().click();
  const dialog = page.getByRole("dialog");
  const pattern = dialog.getByRole("textbox").first();
  // Without edits it closes at once.
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Block host" }).first().click();
  await pattern.fill("ads.example");
  await page.mouse.click(4, 400);
  assert.equal(await pattern.inputValue(), "ads.example");
  await page.keyboard.press("Escape");
  await dialog.getByText("You have unsaved changes").waitFor();
  await page.keyboard.press("Escape");
  await dialog.getByText("You have unsaved changes").waitFor({ state: "detached" });
  assert.equal(await pattern.inputValue(), "ads.example");
  await dialog.getByRole("button", { name: "Close", exact: true }).click();
  await dialog.getByRole("button", { name: "Close without saving" }).click();
  await dialog.waitFor({ state: "detached" });
  assert.deepEqual(await bench.weir.get("/blocklist"), []);
});

journey("An unsaved note and an unsaved setting are kept while other screens are open", async (bench) => {
  await bench.send("/orders", "/missing");
  const page = await bench.open("/traffic");
  const pane = await openRow(page, "/orders");
  await pane.getByRole("tab", { name: "Overview" }).click();
  const note = pane.getByRole("textbox", { name: "Note" });
  await note.fill("half a note");
  await page.keyboard.press("Escape");
  await openRow(page, "/missing");
  await waitForValue(note, "");
  await openRow(page, "/orders");
  await waitForValue(note, "half a note");
  await page.getByRole("link", { name: "Settings", exact: true }).click();
  const setting = page.getByRole("textbox", { name: "Requests to keep" });
  await setting.fill("777");
  await page.getByRole("link", { name: "Traffic", exact: true }).click();
  await page.getByRole("link", { name: "Settings", exact: true }).click();
  await waitForValue(setting, "777");
});
