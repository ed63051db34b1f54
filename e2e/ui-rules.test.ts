import assert from "node:assert/strict";
import { gunzipSync } from "node:zlib";
import { proxyClient } from "@headworks/testkit";
import type { ProxyClient } from "@headworks/testkit";
import { callApi, eventually, openRow, row, uiFile, waitForCount } from "./ui-rig.ts";
import type { UiBench } from "./ui-rig.ts";

const journey = uiFile();

/** A client with a timeout long enough for a person at a breakpoint. */
function waitingClient({ weir }: UiBench): ProxyClient {
  return proxyClient(weir.proxyPort, { ca: weir.caPem, timeoutMs: 60_000 });
}

/** Deletes the rules of an earlier journey, which would change this one's traffic. */
async function clearRules(bench: UiBench, kind: string): Promise<void> {
  for (const { id } of await bench.weir.get<readonly { readonly id: string }[]>(`/${kind}`)) {
    await callApi(bench.weir, "DELETE", `/${kind}/${id}`);
  }
}

journey(
  "A breakpoint is created in the UI, and requests are edited, continued, mocked and dropped there",
  async (bench) => {
    const client = waitingClient(bench);
    const page = await bench.open("/breakpoints");
    await page.getByText("No paused requests").waitFor();
    await page.getByRole("button", { name: "New breakpoint" }).first().click();
    const dialog = page.getByRole("dialog", { name: "New breakpoint" });
    await dialog.getByRole("textbox", { name: "Name" }).fill("Hold orders");
    await dialog.getByRole("combobox", { name: "Field" }).click();
    await page.getByRole("option", { name: "Path", exact: true }).click();
    await dialog.getByRole("textbox", { name: "Value" }).fill("/orders");
    await dialog.getByRole("button", { name: "Create" }).click();
    await eventually(
      "the rule is stored",
      async () => (await bench.weir.get<readonly unknown[]>("/breakpoints")).length === 1,
    );
    const queue = page.getByRole("list", { name: "Paused requests" });

    // Edited: another path and an additional field reach the origin.
    const changed = client.fetch(`${bench.origin.url}/orders?held`);
    await queue.getByRole("button").waitFor();
    await page.getByRole("banner").getByRole("button", { name: "1 request paused" }).waitFor();
    const wide = page.viewportSize() ?? { width: 1280, height: 720 };
    await page.setViewportSize({ width: 420, height: 800 });
    assert.equal(await page.evaluate("document.documentElement.scrollWidth"), 420, "cut off on a narrow screen");
    await page.setViewportSize(wide);
    const editor = page.getByRole("region", { name: "Paused request" });
    await editor.getByRole("textbox", { name: "URL" }).waitFor();
    await page.keyboard.press("e");
    await editor.getByRole("textbox", { name: "URL" }).fill(`${bench.origin.url}/elsewhere?changed`);
    await editor.getByRole("button", { name: "Add header" }).click();
    await editor
      .getByRole("textbox", { name: /^Header name/u })
      .last()
      .fill("X-Added");
    await editor.getByRole("textbox", { name: "Value of X-Added" }).fill("by hand");
    await page.keyboard.press("Control+Enter");
    assert.equal((await changed).body.toString(), "you asked for /elsewhere?changed");
    await page.getByText("No paused requests").waitFor();

    // Continued unmodified, by a single key.
    const allowed = client.fetch(`${bench.origin.url}/orders?again`);
    await editor.getByRole("textbox", { name: "URL" }).waitFor();
    await page.keyboard.press("a");
    assert.equal((await allowed).status, 200);
    await page.getByText("No paused requests").waitFor();

    // Mocked: the request does not reach the origin.
    const pending = client.fetch(`${bench.origin.url}/orders?mine`);
    await editor.getByRole("textbox", { name: "URL" }).waitFor();
    await page.keyboard.press("r");
    await editor.getByRole("textbox", { name: "Status" }).fill("418");
    await editor.getByRole("textbox", { name: "Body" }).fill('{"tea":true}');
    await editor.getByRole("button", { name: "Send response" }).click();
    const response = await pending;
    assert.equal(response.status, 418);
    assert.equal(response.body.toString(), '{"tea":true}');
    await page.getByText("No paused requests").waitFor();
    await page.getByText("No paused requests").waitFor();

    // Dropped.
    const cut = client.fetch(`${bench.origin.url}/orders?cut`).then(
      () => "responded",
      (error: unknown) => String(error),
    );
    await editor.getByRole("textbox", { name: "URL" }).waitFor();
    await page.keyboard.press("x");
    assert.match(await cut, /reset|closed|ended|ECONN/iu);
  },
);

journey("Editing stops a breakpoint's timer; the UI reports its expiry, and unsent edits are kept", async (bench) => {
  await clearRules(bench, "breakpoints");
  const client = waitingClient(bench);
  await callApi(bench.weir, "POST", "/breakpoints", {
    path_pattern: "/orders",
    direction: "request",
    timeout_secs: 3,
  });
  const page = await bench.open("/breakpoints");
  const editor = page.getByRole("region", { name: "Paused request" });
  const url = editor.getByRole("textbox", { name: "URL" });

  const held = client.fetch(`${bench.origin.url}/orders?held`);
  await url.fill(`${bench.origin.url}/elsewhere?held`);
  await editor.getByText("Timeout suspended while editing").waitFor();
  await eventually("the timer is held for a minute", async () => {
    const [waiting] =
      await bench.weir.get<readonly { id: string; paused_at: string; deadline: string }[]>("/breakpoints/paused");
    return waiting !== undefined && Date.parse(waiting.deadline) - Date.parse(waiting.paused_at) >= 60_000;
  });
  await editor.getByRole("button", { name: "Send edited" }).click();
  assert.equal((await held).body.toString(), "you asked for /elsewhere?held");

  // The time expires before a decision: the page reports it.
  assert.equal((await client.fetch(`${bench.origin.url}/orders?expired`)).status, 200);
  const messages = page.getByRole("region", { name: "Notifications" });
  await messages.getByText("Continued without a decision").waitFor();
  await messages.getByText(/orders\?expired continued unmodified after 3 s without a decision/u).waitFor();

  // The client disconnects during the edit: the edits can still be sent.
  const connection = await bench.client.connect();
  const { host } = new URL(bench.origin.url);
  await connection.write(`GET ${bench.origin.url}/orders?gone HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  await url.fill(`${bench.origin.url}/elsewhere?kept`);
  await editor.getByText("Timeout suspended while editing").waitFor();
  connection.destroy();
  await messages.getByText("Your edits were not sent").waitFor();
  await page.getByText("No paused requests").waitFor();
  const kept = page.getByRole("status").filter({ hasText: "elsewhere?kept" });
  await kept.getByRole("button", { name: "Copy" }).waitFor();
  await kept.getByRole("button", { name: "Send as replay…" }).click();
  await eventually("the request is in the replay's editor", async () => {
    const value = await page.getByRole("textbox", { name: "URL" }).inputValue();
    return value === `${bench.origin.url}/elsewhere?kept`;
  });
  await page.getByRole("link", { name: /^Break/u }).click();
  assert.equal(await page.getByText("Your edits were not sent.").count(), 0, "the notice is closed");
  await clearRules(bench, "breakpoints");
});

journey("A new item in the queue changes neither the selection nor the focus", async (bench) => {
  const client = waitingClient(bench);
  await callApi(bench.weir, "POST", "/breakpoints", {
    name: "All responses",
    path_pattern: "/slow",
    direction: "response",
  });
  const page = await bench.open("/breakpoints");
  const first = client.fetch(`${bench.origin.url}/slow?1`);
  const queue = page.getByRole("list", { name: "Paused requests" }).getByRole("button");
  await waitForCount(queue, 1);
  const editor = page.getByRole("region", { name: "Paused request" });
  const body = editor.getByRole("textbox", { name: "Body" });
  await body.fill("typed so far");
  const second = client.fetch(`${bench.origin.url}/slow?2`);
  await waitForCount(queue, 2);
  await page.keyboard.type(", and more");
  assert.equal(await body.inputValue(), "typed so far, and more");
  // Selecting the other one, or opening another screen, keeps the edits.
  await queue.nth(1).click();
  await eventually("the other is shown", async () => !(await body.inputValue()).startsWith("typed"));
  await page.getByRole("link", { name: "Block", exact: true }).click();
  await page.getByRole("link", { name: /^Break/u }).click();
  await queue.first().click();
  await eventually("it is as it was left", async () => (await body.inputValue()) === "typed so far, and more");
  await editor.getByRole("button", { name: "Send edited" }).click();
  assert.equal((await first).body.toString(), "typed so far, and more");
  await waitForCount(queue, 1);
  await editor.getByRole("button", { name: "All from this rule" }).click();
  await page.getByRole("menuitem", { name: "Continue all and disable the rule" }).click();
  assert.equal((await second).status, 200);
  await page.getByText("No paused requests").waitFor();
  await page.getByRole("tab", { name: "Rules" }).click();
  const toggle = page.getByRole("switch", { name: "Enable All responses" });
  assert.equal(await toggle.isChecked(), false);
  await page.getByRole("button", { name: "More actions for All responses" }).click();
  await page.getByRole("menuitem", { name: "Delete" }).click();
  await waitForCount(toggle, 0);
  await page.getByRole("button", { name: "Undo" }).click();
  await toggle.waitFor();
  await clearRules(bench, "breakpoints");
});

journey("A rewrite is tested with captured traffic, saved, reordered and disabled", async (bench) => {
  await bench.send("/orders?tried");
  const page = await bench.open("/rewrites");
  await page.getByRole("button", { name: "Templates" }).click();
  await page.getByRole("dialog", { name: "Templates" }).getByRole("button", { name: /CORS/u }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "New rewrite" }).click();
  const editor = page.getByRole("form", { name: "New rewrite" });
  await editor.getByRole("textbox", { name: "Name" }).first().fill("Cheap gates");
  await editor.getByRole("button", { name: "Add condition" }).click();
  await editor.getByRole("combobox", { name: "Field" }).click();
  await page.getByRole("option", { name: "Path", exact: true }).click();
  await editor.getByRole("textbox", { name: "Value" }).first().fill("/orders");
  await editor.getByText("Matches 1 of the last").waitFor();
  await editor.getByRole("radio", { name: "Responses" }).click();
  await editor.getByRole("combobox", { name: "Action of step 1" }).click();
  await page.getByRole("option", { name: "Replace in body" }).click();
  await editor.getByRole("textbox", { name: "Find" }).fill("12\\.5");
  await editor.getByRole("textbox", { name: "Replace with" }).fill("1.25");
  await editor.getByRole("combobox", { name: "Captured request" }).click();
  await page.getByRole("option", { name: /tried/u }).click();
  await editor.getByRole("button", { name: "Test", exact: true }).click();
  const change = editor.getByRole("group", { name: "Changes to the response" });
  await change.getByText('"price": 1.25,').waitFor();
  await change.getByText('"price": 12.5,').waitFor();
  await editor.getByRole("button", { name: "Create" }).click();
  await page.getByRole("form", { name: "Rewrite Cheap gates" }).waitFor();
  const response = await bench.client.fetch(`${bench.origin.url}/orders`);
  assert.match(gunzipSync(response.body).toString(), /"price":1\.25/u);

  await callApi(bench.weir, "POST", "/rewrites", {
    name: "Second",
    condition: { type: "all" },
    direction: "response",
    rewrites: [{ type: "set_header", name: "X-Second", value: "yes" }],
  });
  const list = page.getByRole("list", { name: "Rewrites" });
  await waitForCount(list.getByRole("listitem"), 2);
  const names = async (): Promise<(string | null)[]> => {
    const switches = await list.getByRole("switch").all();
    return await Promise.all(switches.map(async (each) => await each.getAttribute("aria-label")));
  };
  assert.deepEqual(await names(), ["Enable Cheap gates", "Enable Second"]);
  await list.getByRole("listitem").last().dragTo(list.getByRole("listitem").first());
  await eventually("the new order", async () => (await names())[0] === "Enable Second");
  await page.reload();
  await waitForCount(list.getByRole("listitem"), 2);
  assert.deepEqual(await names(), ["Enable Second", "Enable Cheap gates"]);
  await page.getByRole("switch", { name: "Enable Cheap gates" }).click();
  await eventually("prices are as they were", async () => {
    const plain = await bench.client.fetch(`${bench.origin.url}/orders`);
    return gunzipSync(plain.body).toString().includes("12.5");
  });
  await clearRules(bench, "rewrites");
});

journey("An entry that a rule changed shows the rule, the changes, and the original", async (bench) => {
  await callApi(bench.weir, "POST", "/rewrites", {
    name: "Cheap gates",
    condition: { type: "path_pattern", pattern: "^/orders$" },
    direction: "both",
    rewrites: [
      { type: "set_header", name: "X-Env", value: "staging" },
      { type: "body_rewrite", pattern: "12\\.5", replacement: "1.25" },
    ],
  });
  await bench.send("/orders");
  await clearRules(bench, "rewrites");
  const page = await bench.open("/traffic");
  const pane = await openRow(page, "/orders");
  await row(page, "/orders").getByText("modified").waitFor();
  await pane.getByRole("tab", { name: "Overview" }).click();
  const trace = pane.getByRole("list", { name: "Applied rules" });
  await trace.getByRole("link", { name: "Cheap gates" }).first().waitFor();
  await trace.getByText("set header X-Env: staging").first().waitFor();
  await pane.getByRole("tab", { name: "Messages" }).click();
  await pane.getByRole("radio", { name: "Changes" }).click();
  const response = pane.getByRole("group", { name: "Response: changes" });
  await response.getByText('"price": 12.5,').waitFor();
  await response.getByText('"price": 1.25,').waitFor();
  await pane.getByRole("group", { name: "Request: changes" }).getByText("X-Env: staging").waitFor();
  await pane.getByRole("radio", { name: "Original" }).click();
  await pane.getByText('"price": 12.5').waitFor();
  assert.equal(await pane.getByText("X-Env").count(), 0);
});

journey("A condition is edited as lines, as a query, and as JSON, and stays the same", async (bench) => {
  const page = await bench.open("/breakpoints");
  await page.getByRole("button", { name: "New breakpoint" }).first().click();
  const dialog = page.getByRole("dialog", { name: "New breakpoint" });
  const create = dialog.getByRole("button", { name: "Create" });
  await dialog.getByRole("radio", { name: "Query" }).click();
  const query = dialog.getByRole("textbox", { name: "Condition in the query language" });
  await query.fill("since:10m");
  await dialog.getByRole("alert").waitFor();
  assert.equal(await create.isDisabled(), true);
  await query.fill("host:=api.example.com -status:5xx");
  assert.equal(await create.isDisabled(), false);
  await dialog.getByRole("radio", { name: "Form" }).click();
  const status = dialog.getByRole("group", { name: "Status condition" });
  assert.equal(await status.getByRole("textbox", { name: "Value" }).inputValue(), "5xx");
  assert.equal(await status.getByRole("button", { name: /^not: negate/u }).getAttribute("aria-pressed"), "true");
  await status.getByRole("textbox", { name: "Value" }).fill("404");
  await dialog.getByRole("radio", { name: "JSON" }).click();
  const json = dialog.getByRole("textbox", { name: "Condition as JSON" });
  const written: unknown = JSON.parse(await json.inputValue());
  const expected = {
    type: "and",
    conditions: [
      { type: "host", pattern: "^api\\.example\\.com$" },
      { type: "not", condition: { type: "status_code", range: "404" } },
    ],
  };
  assert.deepEqual(written, expected);
  await json.fill('{"type":"host","pattern":"("}');
  await create.click();
  await dialog.getByRole("alert").first().waitFor();
  await json.fill(JSON.stringify(expected));
  await create.click();
  await waitForCount(dialog, 0);
  const [rule] = await bench.weir.get<readonly { readonly condition: unknown }[]>("/breakpoints");
  assert.deepEqual(rule?.condition, expected);
  await clearRules(bench, "breakpoints");
});
