import assert from "node:assert/strict";
import { callApi, eventually, row, uiFile, waitForCount } from "./ui-rig.ts";
import type { UiBench } from "./ui-rig.ts";

const journey = uiFile();

/** Deletes the mocks of an earlier journey, which would respond to this one's requests. */
async function clearMocks(bench: UiBench): Promise<void> {
  for (const { id } of await bench.weir.get<readonly { readonly id: string }[]>("/mocks")) {
    await callApi(bench.weir, "DELETE", `/mocks/${id}`);
  }
}

journey("A mock is created from a row, responds, is edited, and rolled back", async (bench) => {
  await bench.send("/orders");
  const page = await bench.open("/traffic");
  await row(page, "/orders").click({ button: "right" });
  await page.getByRole("menuitem", { name: "Mock this response…" }).click();
  const fresh = page.getByRole("form", { name: "New mock" });
  await fresh.getByText("Matches 1 of the last").waitFor();
  const name = `GET 127.0.0.1:${bench.origin.port}/orders`;
  assert.equal(await fresh.getByRole("textbox", { name: "Name", exact: true }).inputValue(), name);
  const body = fresh.getByRole("textbox", { name: "Body", exact: true });
  assert.match(await body.inputValue(), /"title":"Weir gate"/u);
  await body.fill('{"mocked":"{{request.path}}"}');
  await fresh.getByRole("switch", { name: /Expand/u }).click();
  await fresh.getByRole("button", { name: "Create" }).click();
  const editor = page.getByRole("form", { name: `Mock ${name}` });
  await editor.getByRole("tab", { name: "Hits" }).waitFor();
  const url = `${bench.origin.url}/orders`;
  assert.equal((await bench.client.fetch(url)).body.toString(), '{"mocked":"/orders"}');

  // Another response, which creates a second version.
  await editor.getByRole("radio", { name: "Sequence" }).click();
  await editor.getByRole("button", { name: "Add response" }).click();
  const second = editor.getByRole("group", { name: "Response 2" });
  await second.getByRole("textbox", { name: "Status" }).fill("503");
  // The saved mock arrives late; the tab chosen meanwhile stays open.
  const late = Promise.withResolvers<void>();
  await page.route("**/mocks/*", async (route) => {
    if (route.request().method() === "GET") await late.promise;
    await route.continue();
  });
  await editor.getByRole("button", { name: "Save" }).click();
  await eventually("a second response", async () => (await bench.client.fetch(url)).status === 503);
  await editor.getByRole("tab", { name: "Hits" }).click();
  late.resolve();
  await editor.getByRole("tab", { name: "Versions 2" }).waitFor();
  await page.unrouteAll({ behavior: "wait" });
  await editor.getByRole("table", { name: "Hits" }).getByText("503 (response 2)").first().waitFor();
  await editor.getByRole("tab", { name: "Versions" }).click();
  await editor.getByRole("button", { name: "Compare with current" }).click();
  await editor
    .getByRole("group", { name: "Version 1 compared with current" })
    .getByText('"type": "sequence"')
    .waitFor();
  await editor.getByRole("button", { name: "Restore" }).click();
  await eventually("one response again", async () => {
    const responses = [await bench.client.fetch(url), await bench.client.fetch(url)];
    return responses.every((response) => response.body.toString() === '{"mocked":"/orders"}');
  });
  await page
    .getByRole("list", { name: "Mocks" })
    .getByRole("img", { name: /hits? in the last/u })
    .waitFor();
  await clearMocks(bench);
});

journey("Responses are recorded, reviewed, and promoted to mocks; collections switch them together", async (bench) => {
  const page = await bench.open("/mocks");
  await page.getByRole("button", { name: "New collection" }).click();
  await page.getByRole("dialog").getByRole("textbox", { name: "Name" }).fill("Shop");
  await page.getByRole("dialog").getByRole("button", { name: "Create" }).click();
  await page.getByRole("button", { name: /^Shop/u }).waitFor();
  await page.getByRole("button", { name: "More actions", exact: true }).click();
  await page.getByRole("menuitem", { name: "Record responses" }).click();
  await page.getByText("Recording responses as mocks.").waitFor();
  await bench.client.fetch(`${bench.origin.url}/recorded-1`);
  await bench.client.fetch(`${bench.origin.url}/recorded-2`);
  await page.getByText("2 responses recorded").waitFor();
  await page.getByRole("button", { name: "Review", exact: true }).click();
  const panel = page.getByRole("region", { name: "Recorded responses" });
  await waitForCount(panel.getByRole("checkbox"), 2);
  await panel.getByRole("checkbox", { name: /recorded-1/u }).uncheck();
  await panel.getByRole("button", { name: "Create 1 mock" }).click();
  await page
    .getByRole("list", { name: "Mocks" })
    .getByText(/recorded-2/u)
    .first()
    .waitFor();
  await panel.getByRole("button", { name: "Recording", exact: true }).click();
  await eventually("no recording", async () => {
    const { recording } = await bench.weir.get<{ readonly recording: boolean }>("/mocks/recording/status");
    return !recording;
  });
  await callApi(bench.weir, "POST", "/mocks/recording/clear");
  await clearMocks(bench);
});

journey("An OpenAPI document is previewed before it is imported", async (bench) => {
  const page = await bench.open("/mocks");
  await page.getByRole("button", { name: "More actions", exact: true }).click();
  await page.getByRole("menuitem", { name: "Import…" }).click();
  const dialog = page.getByRole("dialog", { name: "Import mocks" });
  const document = {
    openapi: "3.1.0",
    info: { title: "Shop", version: "1" },
    servers: [{ url: bench.origin.url }],
    paths: {
      "/imported": {
        get: {
          responses: { 200: { description: "ok", content: { "application/json": { example: { made: true } } } } },
        },
      },
    },
  };
  await dialog.getByLabel("Document").setInputFiles({
    name: "shop.json",
    mimeType: "application/json",
    buffer: Buffer.from(JSON.stringify(document)),
  });
  await dialog.getByRole("button", { name: "Preview" }).click();
  await dialog
    .getByRole("group", { name: "Preview" })
    .getByText(/imported/u)
    .first()
    .waitFor();
  assert.equal((await bench.weir.get<readonly unknown[]>("/mocks")).length, 0);
  await dialog.getByRole("button", { name: "Import 1 mock" }).click();
  await waitForCount(dialog, 0);
  const response = await bench.client.fetch(`${bench.origin.url}/imported`);
  assert.deepEqual(JSON.parse(response.body.toString()), { made: true });
  await clearMocks(bench);
});

journey("Responses of one mock are selected by conditions that are built line by line", async (bench) => {
  const url = `${bench.origin.url}/checkout`;
  const { id } = (await callApi(bench.weir, "POST", "/mocks", {
    name: "Checkout",
    condition: { type: "path_pattern", pattern: "^/checkout" },
    response: { status_code: 200, body: "plain" },
  })) as { readonly id: string };
  const page = await bench.open(`/mocks?id=${id}`);
  const editor = page.getByRole("form", { name: "Mock Checkout" });
  await editor.getByRole("radio", { name: "Conditional" }).click();
  const response = editor.getByRole("group", { name: "Response 1" });
  const when = response.getByRole("group", { name: "When" });
  const line = when.getByRole("group", { name: "Query parameter condition" });
  await line.getByRole("textbox", { name: "Name" }).fill("step");
  // Rules can have negated conditions, responses cannot.
  assert.equal(await when.getByRole("button", { name: /^not: negate/u }).count(), 0);
  await line.getByRole("textbox", { name: "Value" }).fill("pay");
  await when.getByRole("button", { name: "Add condition" }).click();
  const second = when.getByRole("group", { name: "Query parameter condition" }).nth(1);
  await second.getByRole("combobox", { name: "Field" }).click();
  await page.getByRole("option", { name: "Body", exact: true }).click();
  await when.getByRole("radio", { name: "Match any" }).click();
  await editor.getByRole("button", { name: "Save" }).click();
  await editor.getByText("Complete the condition of each response").waitFor();
  const body = when.getByRole("group", { name: "Body condition" });
  await body.getByRole("textbox", { name: "Value" }).fill("card=");
  await response.getByRole("textbox", { name: "Status" }).fill("402");
  await editor.getByRole("group", { name: "Otherwise" }).getByRole("textbox", { name: "Status" }).fill("418");
  await editor.getByRole("button", { name: "Save" }).click();
  const status = async (path: string, sent?: string): Promise<number> =>
    (await bench.client.fetch({ url: url + path, ...(sent === undefined ? {} : { method: "POST", body: sent }) }))
      .status;
  await eventually("the response of the first condition", async () => (await status("?step=pay")) === 402);
  assert.equal(await status("", "card=1"), 402);
  assert.equal(await status("?step=cart"), 418);
  await page.getByText("Checkout saved").waitFor();
  await page.reload();
  await body.getByRole("textbox", { name: "Value" }).waitFor();
  assert.equal(await body.getByRole("textbox", { name: "Value" }).inputValue(), "card=");
  assert.equal(await line.getByRole("textbox", { name: "Name" }).inputValue(), "step");
  await clearMocks(bench);
});

journey(
  "A recorded session is served in place of the servers, and requests without a response are listed",
  async (bench) => {
    await bench.send("/served?ts=1");
    const page = await bench.open("/mocks?panel=serving");
    const panel = page.getByRole("region", { name: "Serve a session" });
    await panel.getByRole("combobox", { name: "Session" }).click();
    await page.getByRole("option", { name: /^A recorded session is served/u }).click();
    await panel.getByRole("button", { name: "Start serving" }).click();
    await page.getByText("is served in place of all servers").waitFor();
    const mark = page.getByRole("banner").getByRole("button", { name: "Serving a session" });
    await mark.waitFor();
    const originUrl = bench.origin.url;
    assert.equal((await bench.client.fetch(`${originUrl}/served?ts=1`)).body.toString(), "you asked for /served?ts=1");
    assert.equal((await bench.client.fetch(`${originUrl}/served?ts=2`)).status, 502);
    const misses = panel.getByRole("list", { name: "Missed requests" });
    await misses
      .getByText(/served\?ts=2/u)
      .first()
      .waitFor();
    await misses.getByText(/Closest: GET .*ts=1/u).waitFor();
    await panel.getByRole("button", { name: "Stop serving" }).click();
    await waitForCount(mark, 0);
    await eventually(
      "the server responds again",
      async () => (await bench.client.fetch(`${originUrl}/served?ts=2`)).status === 200,
    );
  },
);

journey("Several mocks are switched together, and their hit history is cleared after a confirmation", async (bench) => {
  const names = ["one", "two", "three"];
  for (const name of names) {
    await callApi(bench.weir, "POST", "/mocks", { name, path_pattern: `^/${name}`, body: name });
  }
  await bench.client.fetch(`${bench.origin.url}/one`);
  const page = await bench.open("/mocks");
  const several = page.getByRole("group", { name: "Bulk actions" });
  await page.getByRole("checkbox", { name: "Select one" }).check();
  await page.getByRole("checkbox", { name: "Select three" }).check();
  await several.getByText("2 of 3 selected").waitFor();
  const on = async (): Promise<readonly string[]> =>
    (await bench.weir.get<readonly { readonly name: string; readonly enabled: boolean }[]>("/mocks"))
      .filter(({ enabled }) => enabled)
      .map(({ name }) => name);
  await several.getByRole("button", { name: "Disable" }).click();
  await eventually("two are off", async () => (await on()).join(" ") === "two");
  await eventually(
    "the switches say so",
    async () => !(await page.getByRole("switch", { name: "Enable one" }).isChecked()),
  );
  await several.getByRole("checkbox").check();
  await several.getByRole("button", { name: "Enable" }).click();
  await eventually("all are on", async () => (await on()).length === 3);

  await page.getByRole("list", { name: "Mocks" }).getByRole("button", { name: /^one/u }).click();
  await page.getByRole("tab", { name: /^Hits/u }).click();
  const responses = page.getByRole("table", { name: "Hits" });
  await responses.getByText(/\/one$/u).waitFor();
  await page.getByRole("button", { name: "Clear hit history of all mocks" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
  assert.notDeepEqual(await bench.weir.get("/mocks/analytics"), []);
  await page.getByRole("button", { name: "More actions", exact: true }).click();
  await page.getByRole("menuitem", { name: "Clear hit history…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Clear" }).click();
  await page.getByText("No recent hits").waitFor();
  assert.deepEqual(await bench.weir.get("/mocks/analytics"), []);
  await clearMocks(bench);
});
