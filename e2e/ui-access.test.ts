import assert from "node:assert/strict";
import type { Locator, Page } from "playwright-core";
import { barrierCheck } from "./ui-barriers.ts";
import { callApi, eventually, openRow, row, uiFile, visit, waitForCount } from "./ui-rig.ts";

const journey = uiFile();

interface Made {
  readonly id: string;
}

journey("No screen has a serious accessibility violation, in either theme", async (bench) => {
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
    await check(`detail, ${tab}`, '[aria-label="Request details"]');
  }
  const panel = pane.getByRole("region", { name: "Body of the response" });
  for (const view of ["Tree", "Table", "Hex", "Raw", "Pretty"]) {
    await panel.getByRole("radio", { name: view, exact: true }).click();
    await check(`body, ${view}`, '[aria-label="Body of the response"]');
  }
  await openRow(page, "/reset");
  await check("failed request");
  await page.keyboard.press("Escape");
  await callApi(bench.weir, "POST", "/blocklist", { pattern: "ads.example", note: "tracker" });
  await callApi(bench.weir, "POST", "/focus", { pattern: "*.shop.example" });
  for (const [path, landmark] of [
    ["/traffic?mode=tree", page.getByRole("treeitem")],
    ["/traffic?mode=waterfall", page.getByRole("radio", { name: "Waterfall", checked: true })],
    ["/traffic?q=host:nowhere", page.getByText("No matching requests")],
  ] as const) {
    await visit(page, path);
    await landmark.first().waitFor();
    await check(path);
  }
  await visit(page, "/traffic");
  await row(page, "/orders").waitFor();
  await page.getByRole("combobox", { name: "Filter" }).fill("status:>=");
  await page.getByRole("alert").waitFor();
  await check("filter with an error");
  for (const [path, landmark] of [
    ["/sessions", "active"],
    ["/blocklist", "tracker"],
    ["/focus", "*.shop.example"],
    ["/connect", "Test setup"],
    ["/settings", "Requests to keep"],
  ] as const) {
    await visit(page, path);
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

journey("No screen of rules has a serious accessibility violation, in either theme", async (bench) => {
  const { weir, origin } = bench;
  const condition = {
    type: "and",
    conditions: [
      { type: "path_pattern", pattern: "^/orders" },
      {
        type: "or",
        conditions: [
          { type: "header", name: "x-a" },
          { type: "method", method: "GET" },
        ],
      },
    ],
  };
  const rewrite = (await callApi(weir, "POST", "/rewrites", {
    name: "Cheap gates",
    condition,
    direction: "both",
    rewrites: [
      { type: "body_rewrite", pattern: "12\\.5", replacement: "1.25" },
      { type: "set_header", name: "X-Env", value: "staging" },
    ],
  })) as Made;
  await bench.send("/orders");
  await callApi(weir, "POST", "/mocks/collections", { name: "Shop" });
  const mock = (await callApi(weir, "POST", "/mocks", {
    name: "Basket",
    path_pattern: "^/basket",
    status_code: 200,
    body: "{}",
  })) as Made;
  await callApi(weir, "PUT", `/mocks/${mock.id}`, {
    name: "Basket",
    path_pattern: "^/basket",
    response_config: { type: "sequence", responses: [{ body: "a" }, { body: "b" }] },
  });
  await bench.client.fetch(`${origin.url}/basket`);
  const [entry] = await weir.entries("/orders");
  const saved = (await callApi(weir, "POST", "/replay/saved", { entry_id: entry?.id, name: "Orders" })) as Made;
  const replay = (await callApi(weir, "POST", `/replay/execute/${saved.id}`)) as Made;
  await callApi(weir, "POST", `/replay/execute/${saved.id}/batch`, { iterations: 5 });
  // For requests only: after they continue below, the response is not paused.
  const hold = { name: "Hold", path_pattern: "^/held", direction: "request", timeout_secs: 600 };
  await callApi(weir, "POST", "/breakpoints", hold);
  // Exceeds this client's timeout, which is irrelevant here.
  const held = bench.client.fetch(`${origin.url}/held`).catch(() => undefined);

  const page = await bench.open("/breakpoints", { reducedMotion: "reduce", viewport: { width: 1440, height: 900 } });
  const { found, check } = barrierCheck(page);
  await page.getByRole("region", { name: "Paused request" }).getByRole("textbox", { name: "URL" }).waitFor();
  await check("queue");
  await page.keyboard.press("r");
  await check("own response", '[aria-label="Paused request"]');
  await page.getByRole("tab", { name: "Rules" }).click();
  await check("breakpoints");
  await page.getByRole("button", { name: "Edit Hold" }).click();
  await page.getByRole("dialog").getByText("Matches").waitFor();
  await check("breakpoint");
  await callApi(weir, "POST", "/breakpoints/resume-all");
  await held;
  for (const [path, landmark] of [
    [`/rewrites?id=${rewrite.id}`, "Test on captured traffic"],
    [`/mocks?id=${mock.id}`, "Repeat from the first after the last"],
    ["/mocks?panel=recording", "No recorded responses"],
    ["/mocks?panel=serving", "Start serving"],
    [`/replay?id=${saved.id}`, "Follow redirects"],
    [`/replay?right=${replay.id}`, "Timing"],
    ["/throttle", "Only for these hosts"],
  ] as const) {
    await visit(page, path);
    await page.getByText(landmark, { exact: true }).first().waitFor();
    await check(path);
  }
  await visit(page, `/mocks?id=${mock.id}`);
  for (const tab of ["Test", "Versions", "Hits"]) {
    await page.getByRole("tab", { name: new RegExp(`^${tab}`, "u") }).click();
    await check(`mock, ${tab}`, '[role="tabpanel"]');
  }
  await visit(page, `/replay?id=${saved.id}`);
  for (const tab of ["Batch", "History"]) {
    await page.getByRole("tab", { name: tab }).click();
    await check(`replay, ${tab}`, '[role="tabpanel"]');
  }
  await visit(page, `/traffic?id=${entry?.id}`);
  const pane = page.getByRole("region", { name: "Request details" });
  await pane.getByRole("radio", { name: "Changes" }).click();
  await pane.getByRole("group", { name: "Response: changes" }).waitFor();
  await check("changes");
  await pane.getByRole("tab", { name: "Overview" }).click();
  await check("trace", '[aria-label="Request details"]');
  assert.deepEqual(found, {});
});

journey("Long names keep every button reachable in narrow windows", async (bench) => {
  const name = "a very long name ".repeat(14);
  const page = await bench.open("/mocks?panel=recording", { viewport: { width: 720, height: 450 } });
  const isWithin = async (button: Locator): Promise<boolean> => {
    const box = await button.boundingBox();
    return box !== null && box.x >= 0 && box.x + box.width <= 720;
  };
  const make = page.getByRole("region", { name: "Recorded responses" }).getByRole("button", { name: /^Create/u });
  await make.waitFor();
  assert.equal(await isWithin(make), true, "Recorded responses");

  const rule = { name, match: { text: "x".repeat(500) }, action: { type: "replace", replacement: "y".repeat(400) } };
  await callApi(bench.weir, "POST", "/ws-traffic/rules", rule);
  await visit(page, "/streams");
  await page.getByRole("button", { name: "Rules for WebSocket messages" }).click();
  const line = page.getByRole("dialog").getByRole("listitem");
  const [change, remove] = await Promise.all(
    ["Edit", "Delete"].map((verb) => line.getByRole("button", { name: new RegExp(`^${verb}`, "u") }).boundingBox()),
  );
  assert.equal(change?.y, remove?.y, "the buttons of a rule are on one line");

  const request = { method: "GET", url: `${bench.origin.url}/orders?${"y".repeat(1500)}` };
  const saved = (await callApi(bench.weir, "POST", "/replay/saved", { name, request })) as { readonly id: string };
  await callApi(bench.weir, "POST", `/replay/execute/${saved.id}`, {});
  await visit(page, `/replay?id=${saved.id}`);
  await page.getByRole("tab", { name: "History" }).click();
  const replay = page.getByRole("table", { name: "Replays" }).getByRole("row").nth(1);
  await replay.waitFor();
  assert.ok(((await replay.boundingBox())?.height ?? 0) < 100, "a replay takes a few lines");
});

journey("The keyboard focus moves into what it opens, and back", async (bench) => {
  const page = await bench.open("/blocklist");
  const arrives = async (locator: Locator): Promise<void> => await locator.and(page.locator(":focus")).waitFor();
  for (const [path, opener, field] of [
    ["/blocklist", "Block host", "Host or pattern"],
    ["/sessions", "New session", "Name"],
    ["/breakpoints?part=rules", "New breakpoint", "Name"],
  ] as const) {
    await visit(page, path);
    const button = page.getByRole("button", { name: opener }).first();
    await button.press("Enter");
    await arrives(page.getByRole("dialog").getByRole("textbox", { name: field }));
    await page.keyboard.press("Escape");
    await arrives(button);
  }
  for (const [path, opener] of [
    ["/rewrites", "New rewrite"],
    ["/mocks", "New mock"],
  ] as const) {
    await visit(page, path);
    const button = page.getByRole("button", { name: opener });
    await button.press("Enter");
    await arrives(page.getByRole("textbox", { name: "Name", exact: true }));
    await page.getByRole("button", { name: "Close editor" }).press("Enter");
    await arrives(button);
  }
  await visit(page, "/replay");
  await page.getByRole("button", { name: "New request", exact: true }).first().press("Enter");
  await arrives(page.getByRole("textbox", { name: "Name", exact: true }));
  await visit(page, "/sessions");
  const rename = page.getByRole("button", { name: "Rename Default Session" });
  await rename.press("Enter");
  await arrives(page.getByRole("textbox", { name: "Session name" }));
  await page.keyboard.press("Escape");
  await arrives(rename);
});

interface Listed {
  readonly screen: string;
  readonly api: string;
  readonly body: (name: string) => object;
  /** How to delete a row with the keyboard. */
  readonly remove: (page: Page, name: string) => Promise<void>;
}

const byMenu = async (page: Page, name: string): Promise<void> => {
  await page.getByRole("button", { name: `More actions for ${name}` }).press("Enter");
  await page.getByRole("menuitem", { name: "Delete" }).press("Enter");
};
const byButton = async (page: Page, name: string): Promise<void> =>
  await page.getByRole("button", { name: `Delete ${name}` }).press("Enter");

const LISTS: readonly Listed[] = [
  {
    screen: "breakpoints?part=rules",
    api: "/breakpoints",
    body: (name) => ({ name, url_pattern: name }),
    remove: byMenu,
  },
  { screen: "mocks", api: "/mocks", body: (name) => ({ name, url_pattern: name, body: "" }), remove: byMenu },
  {
    screen: "rewrites",
    api: "/rewrites",
    body: (name) => ({
      name,
      condition: { type: "host", pattern: name },
      direction: "request",
      rewrites: [{ type: "set_header", name: "X-A", value: "1" }],
    }),
    remove: byMenu,
  },
  { screen: "blocklist", api: "/blocklist", body: (pattern) => ({ pattern }), remove: byButton },
  {
    screen: "replay",
    api: "/replay/saved",
    body: (name) => ({ name, request: { method: "GET", url: "http://a.example/", headers_list: [], body: null } }),
    remove: byButton,
  },
];

for (const { screen, api, body, remove } of LISTS) {
  journey(
    `The focus moves to the next row of ${screen} when one is deleted, and stays on the screen`,
    async (bench) => {
      const { weir } = bench;
      for (const { id } of await weir.get<readonly Made[]>(api)) await callApi(weir, "DELETE", `${api}/${id}`);
      for (const name of ["one.example", "two.example", "three.example"]) await callApi(weir, "POST", api, body(name));
      const page = await bench.open(`/${screen}`);
      const focused = async (): Promise<string> =>
        await page.evaluate<string>(
          "document.activeElement.closest('li, tr')?.innerText.match(/\\w+\\.example/)?.[0] ?? document.activeElement.localName",
        );
      const labels = page.getByRole("button", { name: /^(?:More actions for|Delete) \w+\.example$/u });
      await waitForCount(labels, 3);
      const names = await Promise.all((await labels.all()).map((label) => label.getAttribute("aria-label")));
      const [first = "", second = "", third = ""] = names.map((name) => (name ?? "").replace(/^.* /u, ""));
      await remove(page, first);
      await eventually("the next row has it", async () => (await focused()) === second);
      await remove(page, third);
      await eventually("the row before the last has it", async () => (await focused()) === second);
      await remove(page, second);
      await eventually("the screen has it", async () => (await focused()) === "main");
      assert.deepEqual(await weir.get(api), []);
    },
  );
}
