import assert from "node:assert/strict";
import type { Locator } from "playwright-core";
import { callApi, eventually, openRow, row, uiFile, waitForCount } from "./ui-rig.ts";

const journey = uiFile();

const body = (pane: Locator, side = "response"): Locator => pane.getByRole("region", { name: `Body of the ${side}` });
const show = async (panel: Locator, view: string): Promise<void> =>
  await panel.getByRole("radio", { name: view, exact: true }).click();

journey("JSON is shown pretty, as a tree, as a table, and as bytes", async (bench) => {
  await bench.send("/orders");
  const page = await bench.open("/traffic");
  const pane = await openRow(page, "/orders");
  await pane.getByRole("tab", { name: "Messages" }).click();
  const panel = body(pane);
  await panel.getByText('"Weir gate"').waitFor();
  await show(panel, "Tree");
  await panel.getByRole("treeitem").first().waitFor();
  await show(panel, "Table");
  await panel.getByText("Sluice gate").waitFor();
  await panel.getByRole("columnheader", { name: "price" }).waitFor();
  await show(panel, "Hex");
  await panel.getByText("5b 7b 22 69").first().waitFor();
});

journey("The tree names the row with the keyboard focus only while that row is in the page", async (bench) => {
  await bench.send("/long");
  const page = await bench.open("/traffic");
  const panel = body(await openRow(page, "/long"));
  await show(panel, "Tree");
  const tree = panel.getByRole("tree");
  const named = async (): Promise<string | undefined> => {
    const id = await tree.getAttribute("aria-activedescendant");
    return id === null ? undefined : await page.locator(`[id="${id}"]`).innerText();
  };
  await eventually("the first line is named", async () => (await named())?.startsWith("[ 1,000 items ]") === true);
  await tree.hover();
  await page.mouse.wheel(0, 200 * 22);
  await panel.getByRole("treeitem").getByText("value 210").waitFor();
  assert.equal(await tree.getAttribute("aria-activedescendant"), null);
  await tree.press("End");
  await eventually("the last line is named", async () => (await named())?.includes("value 999") === true);
});

journey("A search in a body steps through its matches and takes regular expressions", async (bench) => {
  await bench.send("/deep");
  const page = await bench.open("/traffic");
  const panel = body(await openRow(page, "/deep"));
  await panel.getByText("needle in the hay").waitFor();
  await panel.getByRole("button", { name: "Search body" }).click();
  const field = panel.getByRole("textbox", { name: "Search body" });
  await field.fill("needle");
  await panel.getByText("1 of 2", { exact: true }).waitFor();
  await field.press("Enter");
  await panel.getByText("2 of 2", { exact: true }).waitFor();
  await panel.getByRole("button", { name: "Match case" }).click();
  await panel.getByText("1 of 1", { exact: true }).waitFor();
  await panel.getByRole("button", { name: "Regular expression" }).click();
  await field.fill("gat[e]");
  await panel.getByText("1 of 2", { exact: true }).waitFor();
});

journey("A viewer whose code cannot be loaded shows an error, and loads again on request", async (bench) => {
  await bench.send("/orders");
  const page = await bench.open("/sessions");
  const code = "**/assets/body-worker*";
  await page.route(code, async (route) => await route.abort());
  await page.getByRole("link", { name: "Traffic", exact: true }).click();
  const panel = body(await openRow(page, "/orders"));
  await panel.getByText("Could not show the body").waitFor();
  await page.unroute(code);
  await panel.getByRole("button", { name: "Try again" }).click();
  await panel.getByText('"Weir gate"').waitFor();
});

journey("Captured HTML is previewed without running scripts", async (bench) => {
  bench.expectRefusedHandlers();
  await bench.send("/page");
  const page = await bench.open("/traffic");
  const panel = body(await openRow(page, "/page"));
  await show(panel, "Preview");
  const frame = panel.locator("iframe");
  await frame.waitFor();
  await frame.contentFrame().getByRole("heading", { name: "Shop front" }).waitFor();
  const sandbox = await frame.getAttribute("sandbox");
  assert.ok(sandbox !== null && !/allow-scripts/u.test(sandbox), `sandbox="${sandbox}"`);
  assert.equal(await page.evaluate("window.attacked"), undefined);
  await waitForCount(frame.contentFrame().locator("script, iframe, meta[http-equiv=refresh]"), 0);
});

journey("A picture is shown with its size, and plain bytes in hexadecimal", async (bench) => {
  await bench.send("/dot.png", "/bytes");
  const page = await bench.open("/traffic");
  const picture = body(await openRow(page, "/dot.png"));
  await picture.getByText(/1 × 1/u).waitFor();
  const bytes = body(await openRow(page, "/bytes"));
  await bytes
    .getByText(/^10 11 12 13/u)
    .first()
    .waitFor();
});

journey("A field whose bytes are UTF-8 is shown as such, and copied and resent byte for byte", async (bench) => {
  const octets = Buffer.from("grün").toString("latin1");
  await bench.send({
    url: "/green",
    headers: [
      ["X-City", octets],
      ["X-Latin", "gr\xfcn"],
    ],
  });
  const page = await bench.open("/traffic", { permissions: ["clipboard-read", "clipboard-write"] });
  const pane = await openRow(page, "/green");
  await pane.getByRole("tab", { name: "Messages" }).click();
  const line = pane.locator("dl > div").filter({ has: page.getByRole("button", { name: "Copy X-City" }) });
  await line.getByText("grün").waitFor();
  await line.getByTitle(`Decoded as UTF-8. In Latin-1, as copied: ${octets}`).waitFor();
  await waitForCount(pane.getByText("UTF-8", { exact: true }), 1);
  await line.getByRole("button", { name: "Copy X-City" }).click();
  await eventually("it is copied", async () => (await page.evaluate("navigator.clipboard.readText()")) === octets);
  await page.keyboard.press("e");
  const field = page.getByRole("textbox", { name: "Value of X-City" });
  await eventually("the field holds the bytes", async () => (await field.inputValue().catch(() => "")) === octets);
  await page.getByText("As UTF-8: grün").waitFor();
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await page.getByRole("region", { name: "Response", exact: true }).waitFor();
  const [first, again] = await bench.weir.entries("/green");
  const valueOf = (entry = first): unknown => entry?.request.headers_list.find(([name]) => name === "X-City")?.[1];
  assert.deepEqual([valueOf(), valueOf(again)], [octets, octets]);
});

journey("Forms and multipart bodies are split into parts, and a part with any name keeps its button", async (bench) => {
  const part = (head: string, text: string): string =>
    `--line\r\nContent-Disposition: form-data; ${head}\r\n\r\n${text}\r\n`;
  const longName = `${"long".repeat(20)}.js`;
  await bench.send(
    {
      method: "POST",
      url: "/form",
      headers: [["Content-Type", "application/x-www-form-urlencoded"]],
      body: "name=Ada+L.&note=%3Cb%3Ehi%3C%2Fb%3E",
    },
    {
      method: "POST",
      url: "/parts",
      headers: [["Content-Type", "multipart/form-data; boundary=line"]],
      body: `${part('name="who"', "Ada")}${part('name="file"; filename="a.txt"', "text of the file")}${part(`name="long"; filename="${longName}"`, "x")}--line--\r\n`,
    },
  );
  const page = await bench.open("/traffic");
  const form = body(await openRow(page, "/form"), "request");
  await form.getByText("Ada L.").waitFor();
  await form.getByText("<b>hi</b>").waitFor();
  const parts = body(await openRow(page, "/parts"), "request");
  await parts.getByText("a.txt").waitFor();
  await parts.getByText("text of the file").waitFor();
  const card = parts.locator("section").filter({ hasText: longName });
  const box = await card.boundingBox();
  const button = await card.getByRole("button", { name: "Download part" }).boundingBox();
  assert.ok(box !== null && button !== null);
  assert.ok(button.x + button.width <= box.x + box.width, "the button is outside of its part");
});

journey(
  "Parameters, cookies and timings have tabs, and warnings of cookies leave space for the value",
  async (bench) => {
    await bench.send({ url: "/orders?page=2&sort=price", headers: [["Cookie", "seen=yes"]] });
    const page = await bench.open("/traffic");
    const pane = await openRow(page, "/orders");
    await pane.getByRole("tab", { name: "Params" }).click();
    await pane
      .getByRole("cell", { name: "price" })
      .or(pane.getByText("price", { exact: true }))
      .first()
      .waitFor();
    await pane.getByRole("tab", { name: /^Cookies/u }).click();
    await pane.getByRole("rowheader", { name: "seen" }).waitFor();
    await pane.getByRole("rowheader", { name: "basket" }).waitFor();
    await pane.getByText("HttpOnly").waitFor();
    await pane.getByText("Browsers reject Secure cookies set over plain HTTP").waitFor();
    const table = pane.getByRole("group", { name: "Set cookies" });
    // A word broken between letters makes its cell taller than two lines.
    const heads = await table.getByRole("columnheader").all();
    for (const head of heads) assert.ok(((await head.boundingBox())?.height ?? Infinity) < 45, await head.innerText());
    assert.ok(((await table.getByRole("cell", { name: "42" }).boundingBox())?.width ?? 0) > 40);
    await pane.getByRole("tab", { name: "Timing" }).click();
    await pane.getByText(/wait/iu).first().waitFor();
  },
);

journey("A note is saved, survives a reload of the page, and marks its row", async (bench) => {
  await bench.send("/orders?noted");
  const page = await bench.open("/traffic");
  const pane = await openRow(page, "noted");
  await pane.getByRole("tab", { name: "Overview" }).click();
  await pane.getByRole("textbox", { name: "Note" }).fill("The basket is empty here");
  await pane.getByRole("button", { name: "Save note" }).click();
  await row(page, "noted").getByLabel("has note").waitFor();
  await page.reload();
  await pane.getByRole("tab", { name: "Overview" }).click();
  await eventually("the note after a reload", async () => {
    const note = pane.getByRole("textbox", { name: "Note" });
    return (await note.count()) === 1 && (await note.inputValue()) === "The basket is empty here";
  });
});

const PAYLOADS = [
  "<script>top.attacked=1;alert(1)</script>",
  '"><img src=x onerror="top.attacked=2;alert(2)">',
  "'-alert(3)-'",
  "<svg/onload=alert(4)>",
  "javascript:alert(5)",
  "</title></style><iframe srcdoc='<script>top.attacked=6</script>'>",
  "{{constructor.constructor('alert(7)')()}}${alert(8)}",
];

journey("Hostile text in path, field, body, note and session name stays text on every screen", async (bench) => {
  bench.expectRefusedHandlers();
  const all = PAYLOADS.join(" ");
  await bench.send(
    ...PAYLOADS.map((payload, index) => ({
      method: "POST",
      url: `/orders?attack=${index}&${encodeURIComponent(payload)}=${payload.replaceAll(/[ #]/gu, "")}`,
      headers: [
        ["Content-Type", "text/html"],
        ["X-Attack", payload],
        ["Cookie", `attack=${payload.replaceAll(/[;,]/gu, "")}`],
      ] as const,
      body: all,
    })),
  );
  const entries = await bench.weir.entries("attack=");
  assert.equal(entries.length, PAYLOADS.length);
  for (const [index, entry] of entries.entries()) {
    await callApi(bench.weir, "PATCH", `/traffic/${entry.id}`, { notes: PAYLOADS[index] });
  }
  const sessions = await bench.weir.get<{ id: string; is_current: boolean }[]>("/sessions");
  const current = sessions.find((session) => session.is_current);
  await callApi(bench.weir, "PATCH", `/sessions/${current?.id ?? ""}`, { name: all.slice(0, 255), notes: all });

  const page = await bench.open("/traffic");
  await waitForCount(page.getByRole("grid").locator("[data-index]"), PAYLOADS.length);
  for (const index of PAYLOADS.keys()) {
    const pane = await openRow(page, `attack=${index}`);
    for (const tab of ["Overview", "Messages", "Params", "Cookies", "Timing"]) {
      await pane.getByRole("tab", { name: new RegExp(`^${tab}`, "u") }).click();
    }
    await pane.getByRole("tab", { name: "Messages" }).click();
    const panel = body(pane, "request");
    for (const view of ["Preview", "Raw", "Pretty"]) await show(panel, view);
  }
  await page.getByRole("radiogroup", { name: "View", exact: true }).getByRole("radio", { name: "Tree" }).click();
  await page.getByRole("treeitem").first().waitFor();
  await page.getByRole("link", { name: "Sessions", exact: true }).click();
  await page
    .getByText(PAYLOADS[0] ?? "")
    .first()
    .waitFor();
  assert.equal(await page.evaluate("window.attacked"), undefined);
});
