import assert from "node:assert/strict";
import { proxyClient, temporaryDirectory } from "@headworks/testkit";
import type { Locator } from "playwright-core";
import { startWeir } from "./rig.ts";
import { callApi, eventually, row, uiFile, visit, waitForCount } from "./ui-rig.ts";

const journey = uiFile();

interface Session {
  readonly id: string;
  readonly name: string | null;
  readonly is_current: boolean;
  readonly request_count: number;
}

const hasFocus = async (element: Locator): Promise<boolean> =>
  (await element.and(element.page().locator(":focus")).count()) === 1;

journey("A session is created, filled, renamed, closed and deleted", async (bench) => {
  const page = await bench.open("/sessions");
  await page.getByRole("button", { name: "New session" }).click();
  const dialog = page.getByRole("dialog", { name: "New session" });
  await dialog.getByRole("textbox", { name: "Name" }).fill("Checkout bug");
  await dialog.getByRole("button", { name: "Create" }).click();
  await page
    .getByRole("button", { name: /^Session/u })
    .getByText("Checkout bug")
    .waitFor();
  await bench.send("/orders?inside");
  await page.getByRole("link", { name: "Traffic", exact: true }).click();
  await row(page, "inside").waitFor();
  await page.getByRole("link", { name: "Sessions", exact: true }).click();
  await page.getByRole("button", { name: "Rename Checkout bug" }).click();
  const name = page.getByRole("textbox", { name: "Session name" });
  // The last character reverses the direction of the following text.
  await name.fill("Checkout mended\u202e");
  await name.press("Enter");
  const mended = page.getByRole("row", { name: /Checkout mended/u });
  await mended.getByText("active").waitFor();
  const other = page.getByRole("row", { name: /A session is created/u });
  await other.getByRole("button", { name: "Open", exact: true }).click();
  await page.getByRole("heading", { name: "No traffic yet" }).waitFor();
  await page.getByRole("link", { name: "Sessions", exact: true }).click();
  await page.getByRole("button", { name: /^More actions for .?Checkout mended/u }).click();
  await page.getByRole("menuitem", { name: "Delete" }).click();
  const question = page.getByRole("dialog");
  assert.match(await question.innerText(), /^Delete \u2068Checkout mended\u202e\u2069\?/u);
  await question.getByRole("button", { name: "Delete" }).click();
  await waitForCount(mended, 0);
  const left = await bench.weir.get<Session[]>("/sessions");
  assert.equal(
    left.some((session) => session.name?.startsWith("Checkout mended") === true),
    false,
  );
});

journey("Opening a session whose entries exceed the limits requires a confirmation", async (bench) => {
  await bench.send("/orders?first");
  await bench.send("/orders?second");
  const full = (await bench.weir.get<Session[]>("/sessions")).find(({ is_current: isCurrent }) => isCurrent);
  const empty = (await callApi(bench.weir, "POST", "/sessions", { name: "empty" })) as Session;
  await callApi(bench.weir, "POST", `/sessions/${empty.id}/switch`);
  const { max_requests: limit } = await bench.weir.get<{ max_requests: number }>("/config");
  await callApi(bench.weir, "PATCH", "/config", { max_requests: 1 });
  const entries = async (): Promise<number | undefined> =>
    (await bench.weir.get<Session[]>("/sessions")).find(({ id }) => id === full?.id)?.request_count;
  try {
    const page = await bench.open("/sessions");
    const open = page
      .getByRole("row", { name: /Opening a session whose/u })
      .getByRole("button", { name: "Open", exact: true });
    const question = page.getByRole("dialog", { name: /without its oldest requests/u });
    await open.click();
    await question.getByText("The oldest 1 of the 2 in this one would be permanently removed").waitFor();
    await question.getByRole("button", { name: "Cancel" }).click();
    await question.waitFor({ state: "hidden" });
    assert.equal(await entries(), 2);
    await open.click();
    await question.getByRole("button", { name: "Open" }).click();
    await row(page, "second").waitFor();
    await eventually("the oldest entry is gone", async () => (await entries()) === 1);
  } finally {
    await callApi(bench.weir, "PATCH", "/config", { max_requests: limit });
  }
});

journey("A block entry is refused at its field, created, disabled, deleted and restored", async (bench) => {
  const page = await bench.open("/blocklist");
  await page.getByRole("button", { name: "Block host" }).click();
  const dialog = page.getByRole("dialog", { name: "Block host" });
  await dialog.getByRole("textbox", { name: "Host or pattern" }).fill("127.0.0.1");
  await dialog.getByRole("textbox", { name: "Status" }).fill("999");
  await dialog.getByRole("button", { name: "Block", exact: true }).click();
  await dialog.getByRole("alert").waitFor();
  await eventually("the field in error has the focus", () => hasFocus(dialog.getByRole("textbox", { name: "Status" })));
  await dialog.getByRole("textbox", { name: "Status" }).fill("418");
  await dialog.getByRole("textbox", { name: "Response body" }).fill("no tea");
  await dialog.getByRole("button", { name: "Block", exact: true }).click();
  await page.getByRole("switch", { name: "Block 127.0.0.1" }).waitFor();
  const url = `${bench.origin.url}/orders`;
  const stopped = await bench.client.fetch(url);
  assert.equal(stopped.status, 418);
  assert.equal(stopped.body.toString(), "no tea");
  await page.getByRole("switch", { name: "Block 127.0.0.1" }).click();
  await eventually("the request passes again", async () => (await bench.client.fetch(url)).status === 200);
  await page.getByRole("button", { name: "Delete 127.0.0.1" }).click();
  await page.getByText("No blocked hosts").waitFor();
  await page.getByRole("button", { name: "Undo" }).click();
  await page.getByRole("switch", { name: "Block 127.0.0.1" }).waitFor();
  await page.getByRole("button", { name: "Delete 127.0.0.1" }).click();
  await page.getByText("No blocked hosts").waitFor();
});

journey("A focused host is highlighted, and shown alone on request", async (bench) => {
  await bench.send("/orders", `http://localhost:${bench.origin.port}/orders?elsewhere`);
  const page = await bench.open("/focus");
  await page.getByText("No focused hosts").waitFor();
  await page.getByRole("textbox", { name: "Host or pattern" }).fill("local host");
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await page.getByRole("alert").waitFor();
  await page.getByRole("textbox", { name: "Host or pattern" }).fill("localhost");
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await page.getByRole("button", { name: "Remove localhost" }).waitFor();
  await page.getByRole("link", { name: "Traffic", exact: true }).click();
  const rows = page.getByRole("grid").locator("[data-index]");
  await waitForCount(rows, 2);
  await page.getByRole("button", { name: "Show focused hosts only" }).click();
  await waitForCount(rows, 1);
  await row(page, "elsewhere").waitFor();
  await page.getByRole("button", { name: "Show all hosts" }).click();
  await waitForCount(rows, 2);
  await page.getByRole("link", { name: "Focus", exact: true }).click();
  await page.getByRole("button", { name: "Remove localhost" }).click();
  await page.getByText("No focused hosts").waitFor();
});

journey("A setting is refused at its field, and saved once valid", async (bench) => {
  const page = await bench.open("/settings");
  const limit = page.getByRole("textbox", { name: "Requests to keep" });
  await limit.fill("-5");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByRole("alert").waitFor();
  assert.equal(await limit.getAttribute("aria-invalid"), "true");
  await limit.fill("4321");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText("Recording saved").waitFor();
  await page.reload();
  await eventually(
    "the limit after a reload",
    async () => (await limit.count()) === 1 && (await limit.inputValue()) === "4321",
  );
  assert.equal((await bench.weir.get<{ max_requests: number }>("/config")).max_requests, 4321);
});

journey("One button stops and starts recording", async (bench) => {
  const page = await bench.open("/traffic");
  await page.getByRole("button", { name: "Recording", exact: true }).click();
  await page.getByRole("button", { name: "Passthrough" }).waitFor();
  assert.equal((await bench.client.fetch(`${bench.origin.url}/orders?unseen`)).status, 200);
  await page.getByRole("button", { name: "Passthrough" }).click();
  await page.getByRole("button", { name: "Recording", exact: true }).waitFor();
  await bench.send("/orders?seen");
  await row(page, "?seen").waitFor();
  assert.equal(await row(page, "unseen").count(), 0);
});

journey("The theme is selected, and remembered", async (bench) => {
  const page = await bench.open("/traffic", { colorScheme: "light" });
  const background = async (): Promise<unknown> =>
    await page.evaluate("getComputedStyle(document.body).backgroundColor");
  const light = await background();
  await page.getByRole("button", { name: "Display" }).click();
  await page.getByRole("menuitemradio", { name: "Dark" }).click();
  const dark = await background();
  assert.notEqual(dark, light);
  await page.reload();
  await page.getByRole("navigation", { name: "Screens" }).waitFor();
  assert.equal(await background(), dark);
});

journey("All main functions work by keyboard alone", async (bench) => {
  await bench.send("/orders?one", "/orders?two", "/orders?three");
  const page = await bench.open("/traffic");
  await row(page, "three").waitFor();
  const heading = page.getByRole("region", { name: "Request details" }).getByRole("heading", { level: 1 });
  await page.keyboard.press("j");
  await eventually("the list has the focus", () => hasFocus(page.getByRole("grid")));
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await heading.getByText("two").waitFor();
  await page.keyboard.press("j");
  await heading.getByText("one").waitFor();
  await page.keyboard.press("k");
  await heading.getByText("two").waitFor();
  await page.keyboard.press("Escape");
  await heading.waitFor({ state: "detached" });
  await page.keyboard.press("/");
  await page.keyboard.type("three");
  await page.keyboard.press("Enter");
  await waitForCount(page.getByRole("grid").locator("[data-index]"), 1);
  await page.keyboard.press("?");
  await page.getByRole("dialog").getByText("Next request").waitFor();
  await page.keyboard.press("Tab");
  await page.getByText("Close", { exact: true }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.keyboard.press("Control+k");
  await page.getByRole("dialog").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.keyboard.press("g");
  await page.keyboard.press("s");
  await page.getByRole("heading", { level: 1, name: "Sessions" }).waitFor();
});

journey("In a narrow window the details fill the page, and nothing is cut off", async (bench) => {
  await bench.send("/orders?narrow");
  const page = await bench.open("/traffic", { viewport: { width: 420, height: 800 } });
  const overflow = async (): Promise<unknown> =>
    await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth");
  await row(page, "narrow").click();
  const pane = page.getByRole("region", { name: "Request details" });
  await pane.getByRole("button", { name: "Close details" }).waitFor();
  const box = await pane.boundingBox();
  assert.ok(box !== null && box.width >= 340, `the details are ${box?.width} px wide`);
  assert.equal(await overflow(), 0);
  await pane.getByRole("button", { name: "Close details" }).click();
  for (const [path, title] of [
    ["/sessions", "Sessions"],
    ["/blocklist", "Block list"],
    ["/focus", "Focus"],
    ["/connect", "Setup"],
    ["/settings", "Settings"],
  ] as const) {
    await visit(page, path);
    await page.getByRole("heading", { level: 1, name: title }).waitFor();
    assert.equal(await overflow(), 0, path);
  }
});

journey("A list that is empty because of the filter shows that reason", async (bench) => {
  await bench.send("/orders");
  const page = await bench.open("/traffic?q=host:nowhere.example");
  await page.getByText("No matching requests").waitFor();
  await page.getByRole("button", { name: "Clear filter" }).last().click();
  await row(page, "/orders").waitFor();
});

journey("A page survives a restart of the service and then shows new traffic", async (bench) => {
  await using data = await temporaryDirectory();
  const first = await startWeir({ dataDir: data.path });
  const url = `${bench.origin.url}/orders`;
  await proxyClient(first.proxyPort).fetch(`${url}?early`);
  const page = await bench.open(`${first.apiUrl}/traffic`);
  await row(page, "early").waitFor();
  await page.getByText("Live", { exact: true }).waitFor();
  await first.stop();
  await page.getByRole("button", { name: /^(?:Reconnecting|Offline)/u }).waitFor();
  const ports = [`--proxy-port=${first.proxyPort}`, `--api-port=${first.apiPort}`];
  await using second = await startWeir({ dataDir: data.path, args: ports });
  await proxyClient(second.proxyPort).fetch(`${url}?late`);
  await page.getByText("Live", { exact: true }).waitFor();
  await row(page, "late").waitFor();
  await row(page, "early").waitFor();
});

journey("Each screen reports that the service is down, and requests then fail with that reason", async (bench) => {
  await using data = await temporaryDirectory();
  const first = await startWeir({ dataDir: data.path });
  const page = await bench.open(`${first.apiUrl}/mocks`);
  await page.getByText("No mocks").waitFor();
  await page.getByRole("link", { name: "Block", exact: true }).click();
  await page.getByText("No blocked hosts").waitFor();
  await first.stop();
  const away = page.getByRole("banner").getByRole("button", { name: /^(?:Reconnecting|Offline)/u });
  await away.waitFor();
  // A screen without data only reports that it cannot load.
  await page.getByRole("link", { name: "Mocks", exact: true }).click();
  await page.getByText("Could not load the mocks").waitFor();
  assert.equal(await page.getByText("No mocks").count(), 0);
  // A screen that was never loaded loads by itself later.
  await page.getByRole("link", { name: "Focus", exact: true }).click();
  await page.getByText("Could not load this part of the page. Is Weir still running?").waitFor();
  await page.getByRole("link", { name: "Block", exact: true }).click();
  await page.getByRole("button", { name: "Block host" }).first().click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("textbox").first().fill("ads.example");
  await page.keyboard.press("Enter");
  await dialog.getByText("Weir is not responding. Is it still running?").waitFor();
  await dialog.getByRole("button", { name: "Cancel" }).click();
  // A visible page polls every two seconds, with a timer that the browser does not throttle.
  const sockets: unknown[] = [];
  page.on("websocket", (socket) => sockets.push(socket));
  await away.filter({ hasText: "Offline" }).waitFor();
  const requested = page.waitForRequest("**/health");
  await requested;
  await away.filter({ hasText: /retry in [12] s|now/u }).waitFor();
  assert.deepEqual(sockets, []);
  await page.getByRole("link", { name: "Focus", exact: true }).click();
  await page.getByText("Could not show this screen").waitFor();
  const ports = [`--proxy-port=${first.proxyPort}`, `--api-port=${first.apiPort}`];
  await using _second = await startWeir({ dataDir: data.path, args: ports });
  await away.waitFor({ state: "detached" });
  await page.getByText("No focused hosts").waitFor();
});
