import assert from "node:assert/strict";
import { callApi, eventually, openRow, row, uiFile, waitForCount } from "./ui-rig.ts";

const journey = uiFile();

journey(
  "A breakpoint is made in the UI, and a request is changed, allowed, answered and cut off there",
  async (bench) => {
    const page = await bench.open("/breakpoints");
    await page.getByText("Nothing waits").waitFor();
    await page.getByRole("button", { name: "New breakpoint" }).first().click();
    const dialog = page.getByRole("dialog", { name: "New breakpoint" });
    await dialog.getByRole("textbox", { name: "Name" }).fill("Hold orders");
    await dialog.getByRole("combobox", { name: "What is looked at" }).click();
    await page.getByRole("option", { name: "Path", exact: true }).click();
    await dialog.getByRole("textbox", { name: "Value" }).fill("/orders");
    await dialog.getByRole("button", { name: "Create" }).click();
    await eventually(
      "the rule is stored",
      async () => (await bench.weir.get<readonly unknown[]>("/breakpoints")).length === 1,
    );
    const queue = page.getByRole("list", { name: "Waiting exchanges" });

    // Changed: another path and a field more reach the origin.
    const changed = bench.client.fetch(`${bench.origin.url}/orders?held`);
    await queue.getByRole("button").waitFor();
    await page.getByRole("banner").getByRole("button", { name: "1 exchange waits" }).waitFor();
    await page.keyboard.press("e");
    const editor = page.getByRole("region", { name: "Waiting exchange" });
    await editor.getByRole("textbox", { name: "URL" }).fill(`${bench.origin.url}/elsewhere?changed`);
    await editor.getByRole("button", { name: "Add a field" }).click();
    await editor
      .getByRole("textbox", { name: /^Name of field/u })
      .last()
      .fill("X-Added");
    await editor.getByRole("textbox", { name: "Value of X-Added" }).fill("by hand");
    await page.keyboard.press("Control+Enter");
    assert.equal((await changed).body.toString(), "you asked for /elsewhere?changed");
    await page.getByText("Nothing waits").waitFor();

    // Allowed by one key, as it was.
    const allowed = bench.client.fetch(`${bench.origin.url}/orders?again`);
    await queue.getByRole("button").waitFor();
    await page.keyboard.press("a");
    assert.equal((await allowed).status, 200);
    await page.getByText("Nothing waits").waitFor();

    // Answered here; the origin hears nothing of it.
    const answered = bench.client.fetch(`${bench.origin.url}/orders?mine`);
    await queue.getByRole("button").waitFor();
    await page.keyboard.press("r");
    await editor.getByRole("textbox", { name: "Status" }).fill("418");
    await editor.getByRole("textbox", { name: "Body" }).fill('{"tea":true}');
    await editor.getByRole("button", { name: "Send this answer" }).click();
    const answer = await answered;
    assert.equal(answer.status, 418);
    assert.equal(answer.body.toString(), '{"tea":true}');

    // Cut off.
    const cut = bench.client.fetch(`${bench.origin.url}/orders?cut`).then(
      () => "answered",
      () => "cut",
    );
    await queue.getByRole("button").waitFor();
    await page.keyboard.press("x");
    assert.equal(await cut, "cut");
  },
);

journey("A new item in the queue moves neither the choice nor the focus", async (bench) => {
  await callApi(bench.weir, "POST", "/breakpoints", {
    name: "All answers",
    path_pattern: "/slow",
    direction: "response",
  });
  const page = await bench.open("/breakpoints");
  const first = bench.client.fetch(`${bench.origin.url}/slow?1`);
  const queue = page.getByRole("list", { name: "Waiting exchanges" }).getByRole("button");
  await waitForCount(queue, 1);
  const editor = page.getByRole("region", { name: "Waiting exchange" });
  const body = editor.getByRole("textbox", { name: "Body" });
  await body.fill("typed so far");
  const second = bench.client.fetch(`${bench.origin.url}/slow?2`);
  await waitForCount(queue, 2);
  await page.keyboard.type(", and more");
  assert.equal(await body.inputValue(), "typed so far, and more");
  await editor.getByRole("button", { name: "Send changed" }).click();
  assert.equal((await first).body.toString(), "typed so far, and more");
  await waitForCount(queue, 1);
  await editor.getByRole("button", { name: "All of this rule" }).click();
  await page.getByRole("menuitem", { name: "Allow all and switch the rule off" }).click();
  assert.equal((await second).status, 200);
  await page.getByText("Nothing waits").waitFor();
  await page.getByRole("tab", { name: "Rules" }).click();
  const toggle = page.getByRole("switch", { name: "Use All answers" });
  assert.equal(await toggle.isChecked(), false);
  await page.getByRole("button", { name: "More for All answers" }).click();
  await page.getByRole("menuitem", { name: "Delete" }).click();
  await waitForCount(toggle, 0);
  await page.getByRole("button", { name: "Undo" }).click();
  await toggle.waitFor();
});
