import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Page } from "playwright-core";
import { peer, proxyClient } from "@headworks/testkit";
import { freePort } from "./proxy-processes.ts";
import { startWeir } from "./rig.ts";
import { callApi, eventually, openRow, row, uiFile, waitForCount } from "./ui-rig.ts";

const curl = peer("curl");
const journey = uiFile();

journey("The first run shows four steps, tests interception, and animates the first row", async (bench) => {
  const page = await bench.open("/traffic");
  await page.getByRole("heading", { name: "No traffic yet" }).waitFor();
  for (const title of ["Proxy running", "Trust the certificate", "Send traffic", "View the first request"]) {
    await page.getByRole("heading", { name: title }).waitFor();
  }
  await page.getByRole("link", { name: "Instructions for each system" }).click();
  await page.getByRole("button", { name: "Test setup" }).click();
  await page.getByText("Decryption works on Weir's side").waitFor();
  await page.getByText("Waiting for traffic").waitFor();
  await bench.send("/orders?first");
  await page.getByText("Receiving traffic").waitFor();
  await page.getByRole("link", { name: "Open in Traffic" }).click();
  await page
    .getByRole("region", { name: "Request details" })
    .getByRole("heading", { name: /orders\?first/u })
    .waitFor();
});

journey("A run's traffic is shown live in its session, while the active session gets other traffic", async (bench) => {
  const page = await bench.open("/traffic");
  const begun = await fetch(`${bench.weir.apiUrl}/api/runs`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ name: "login flow" }),
  });
  const run = (await begun.json()) as { id: string; session_id: string; proxy_url: string };
  const program = proxyClient(Number(new URL(run.proxy_url).port), { ca: bench.weir.caPem });
  await page
    .getByRole("banner")
    .getByRole("button", { name: /Session .*1 run/u })
    .click();
  await page
    .getByRole("menuitem", { name: /login flow/u })
    .first()
    .click();
  await page.getByText("is not the active session; a run is being recorded into it").waitFor();
  await program.fetch(`${bench.origin.url}/orders?mine`);
  await row(page, /\/orders\?mine, 200/u).waitFor();
  await bench.send("/orders?theirs");
  await program.fetch(`${bench.origin.url}/orders?mine-again`);
  await row(page, /\/orders\?mine-again, 200/u).waitFor();
  assert.equal(await row(page, /theirs/u).count(), 0);
  await page.getByRole("button", { name: "Back to the active session" }).click();
  await row(page, /\/orders\?theirs, 200/u).waitFor();
  assert.equal(await row(page, /mine/u).count(), 0);
  await callApi(bench.weir, "POST", `/runs/${run.id}/end`);
  await page.getByRole("banner").getByRole("button", { name: /1 run/u }).waitFor({ state: "detached" });
});

journey("Rows appear live, newest on top", async (bench) => {
  await bench.send("/orders");
  const page = await bench.open("/traffic");
  await row(page, /\/orders, 200/u).waitFor();
  await page.getByText("Live", { exact: true }).waitFor();
  await bench.send("/missing", "/broken");
  await row(page, /\/missing, 404/u).waitFor();
  await row(page, /\/broken, 500/u).waitFor();
  await waitForCount(page.getByRole("grid").locator("[data-index]"), 3);
  assert.match((await page.locator('[data-index="0"]').getAttribute("aria-label")) ?? "", /\/broken, 500/u);
});

journey("A link to an entry far down shows its row, selected", async (bench) => {
  const entries = await bench.send("/orders?first", ...Array.from({ length: 60 }, (_, index) => `/orders?${index}`));
  const first = entries.find(({ request }) => request.url.endsWith("?first"));
  const page = await bench.open(`/traffic?id=${first?.id}`);
  const shown = row(page, /orders\?first/u);
  await shown.waitFor();
  assert.equal(await shown.getAttribute("aria-selected"), "true");
});

journey("The filter completes, reports errors without a request, applies, and pills narrow it", async (bench) => {
  await bench.send("/orders", "/style.css", "/missing", "/dot.png");
  const page = await bench.open("/traffic");
  const rows = page.getByRole("grid").locator("[data-index]");
  await waitForCount(rows, 4);
  const filter = page.getByRole("combobox", { name: "Filter" });
  await filter.fill("stat");
  await page
    .getByRole("option", { name: /^status/u })
    .first()
    .waitFor();
  await filter.press("Tab");
  assert.match(await filter.inputValue(), /^status:/u);
  await filter.fill("status:>=");
  await page
    .getByRole("alert")
    .getByText(/at character/u)
    .waitFor();
  assert.equal(await filter.getAttribute("aria-invalid"), "true");
  await filter.fill("status:>=400");
  await filter.press("Enter");
  await waitForCount(rows, 1);
  await row(page, "/missing").waitFor();
  assert.match(page.url(), /q=status/u);
  await page.getByRole("button", { name: "Clear filter" }).click();
  await waitForCount(rows, 4);
  await page.getByRole("button", { name: /^CSS/u }).click();
  await waitForCount(rows, 1);
  await row(page, "/style.css").waitFor();
  const requested: string[] = [];
  page.on("request", (request) => requested.push(request.url()));
  await page.goto(`${bench.weir.apiUrl}/traffic?q=foo:bar`);
  await page.getByText("Invalid filter").waitFor();
  assert.deepEqual(
    requested.filter((url) => /\/api\/.*foo/u.test(url)),
    [],
  );
  const problem = await page.getByText(/^unknown field `foo`/u).boundingBox();
  const pill = await page.getByRole("button", { name: "All", exact: true }).boundingBox();
  assert.ok(problem !== null && pill !== null);
  assert.ok(problem.y + problem.height <= pill.y, "what is wrong with the filter covers the pills");
});

journey("Columns sort, and the tree and the waterfall show the same traffic", async (bench) => {
  await bench.send("/orders", "/broken", "/missing");
  const page = await bench.open("/traffic");
  // The whole cell sorts, not only its label.
  const header = page.getByRole("columnheader", { name: /Path/u });
  const width = (await header.boundingBox())?.width ?? 0;
  await header.click({ position: { x: width - 24, y: 12 } });
  await eventually("the paths are in order", async () => (await header.getAttribute("aria-sort")) === "ascending");
  await page
    .getByRole("columnheader", { name: /Status/u })
    .getByRole("button")
    .first()
    .click();
  await eventually("the highest status on top", async () =>
    ((await page.locator('[data-index="0"]').getAttribute("aria-label")) ?? "").includes("/broken, 500"),
  );
  await page.getByRole("radio", { name: "Tree" }).click();
  await page
    .getByRole("treeitem", { name: /127\.0\.0\.1/u })
    .first()
    .click();
  await page.getByRole("treeitem", { name: /\/missing/u }).click();
  await row(page, "/missing").waitFor();
  // The row was there before; the selection of the path shows when the others disappear.
  await eventually("the entries of the path alone", async () => (await row(page, "/orders").count()) === 0);
  await page.getByRole("radio", { name: "Waterfall" }).click();
  await row(page, "/missing").waitFor();
});

journey("A failed exchange shows the client's status and the reason", async (bench) => {
  await bench.send("/reset");
  const page = await bench.open("/traffic");
  const failed = row(page, /\/reset, failed/u);
  await failed.getByText("502", { exact: true }).waitFor();
  const pane = await openRow(page, "/reset");
  await pane.getByText(/Weir responded with 502/u).waitFor();
});

journey(
  "The menu of a row copies a cURL command that repeats the request, and new rows wait while it is open",
  async (bench) => {
    await bench.send({ url: "/orders?copied", headers: [["X-Quote", "it's"]] });
    const page = await bench.open("/traffic", { permissions: ["clipboard-read", "clipboard-write"] });
    await row(page, "copied").click({ button: "right" });
    await page.getByRole("menuitem", { name: /^Copy as cURL/u }).waitFor();
    await bench.send("/missing");
    await page.getByText("1 new", { exact: true }).waitFor();
    await page.getByRole("menuitem", { name: /^Copy as cURL/u }).click();
    await page.getByText("cURL copied").waitFor();
    await row(page, "missing").waitFor();
    const text = await page.evaluate("navigator.clipboard.readText()");
    assert.match(String(text), /^curl .*orders\?copied/su);
    assert.ok(String(text).includes("X-Quote"));
  },
);

journey("The menu of a row blocks its host, and the next request is stopped", async (bench) => {
  await bench.send("/orders?before");
  const page = await bench.open("/traffic");
  await row(page, "before").click({ button: "right" });
  await page.getByRole("menuitem", { name: "Block host" }).click();
  await page.getByText("127.0.0.1 is blocked").waitFor();
  const requested = bench.origin.requests.length;
  await bench.send("/orders?after");
  assert.equal(bench.origin.requests.length, requested, "the request reached the origin");
  await row(page, /after, 403/u).waitFor();
  await page.getByRole("link", { name: "Block", exact: true }).click();
  await page.getByRole("button", { name: "Delete 127.0.0.1" }).click();
  await page.getByText("No blocked hosts").waitFor();
  const [, open] = await bench.send("/orders?open", "/orders?open2");
  assert.equal(open?.response?.status_code, 200);
});

journey("The menu of a row excludes its host from recording", async (bench) => {
  await bench.send("/orders?kept");
  const page = await bench.open("/traffic");
  await row(page, "kept").click({ button: "right" });
  await page.getByRole("menuitem", { name: "Don't record this host" }).click();
  await page.getByText("127.0.0.1 is no longer recorded").waitFor();
  assert.equal((await bench.client.fetch(`${bench.origin.url}/orders?unseen`)).status, 200);
  await callApi(bench.weir, "PATCH", "/config", { ignored_domains: [] });
  await bench.send("/orders?again");
  await row(page, "again").waitFor();
  assert.equal(await row(page, "unseen").count(), 0);
});

journey("Entries are deleted one by one and all at once, the latter after a confirmation", async (bench) => {
  await bench.send("/orders?one", "/orders?two", "/orders?three");
  const page = await bench.open("/traffic");
  await row(page, "one").click({ button: "right" });
  await page.getByRole("menuitem", { name: /^Delete/u }).click();
  await waitForCount(row(page, "one"), 0);
  await page.getByRole("button", { name: "Clear session" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
  assert.equal((await bench.weir.entries()).length, 2);
  await page.getByRole("button", { name: "Clear session" }).click();
  const requested: string[] = [];
  page.on("request", (request) => requested.push(new URL(request.url()).pathname));
  await page.getByRole("dialog", { name: "Clear 2 requests?" }).getByRole("button", { name: "Clear" }).click();
  await page.getByRole("heading", { name: "No traffic yet" }).waitFor();
  assert.ok(requested.includes("/api/traffic/summary"), "the totals are not refreshed");
  assert.equal((await bench.weir.entries()).length, 0);
});

journey("Several entries stay selected, and are exported as a HAR document", async (bench) => {
  await bench.send("/orders?a", "/orders?b", "/orders?c");
  const page = await bench.open("/traffic");
  await row(page, "orders?a").click({ modifiers: ["Control"] });
  await row(page, "orders?c").click({ modifiers: ["Shift"] });
  await page.getByText("3 selected").waitFor();
  assert.equal(await page.evaluate("String(getSelection())"), "", "text is marked");
  await row(page, "orders?b").click({ modifiers: ["Control"] });
  await page.getByText("2 selected").waitFor();
  const place = await row(page, "orders?c").boundingBox();
  await bench.send("/orders?d");
  await page.getByRole("button", { name: "1 new" }).waitFor();
  assert.deepEqual(await row(page, "orders?c").boundingBox(), place);
  await page.getByRole("button", { name: "1 new" }).click();
  await row(page, "orders?d").waitFor();
  await row(page, "orders?c").click({ button: "right" });
  const [file] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("menuitem", { name: "Export as HAR" }).click(),
  ]);
  assert.match(file.suggestedFilename(), /\.har$/u);
  const har = JSON.parse(await readFile(await file.path(), "utf8")) as {
    readonly log: {
      readonly version: string;
      readonly entries: readonly { readonly request: { readonly url: string } }[];
    };
  };
  assert.equal(har.log.version, "1.2");
  assert.deepEqual(har.log.entries.map(({ request }) => new URL(request.url).search).toSorted(), ["?a", "?c"]);
});

journey("A HAR file is imported into a session of its own, which can be opened", async (bench) => {
  await bench.send("/orders?exported");
  const har = await (await fetch(`${bench.weir.apiUrl}/api/export/har`)).text();
  const page = await bench.open("/traffic");
  const [chooser] = await Promise.all([
    page.waitForEvent("filechooser"),
    page.getByRole("button", { name: "Import", exact: true }).click(),
  ]);
  const buffer = Buffer.from(har.replaceAll("exported", "imported"));
  await chooser.setFiles({ name: "from browser.har", mimeType: "application/json", buffer });
  await page.getByText("1 request from from browser.har").waitFor();
  await page.getByRole("button", { name: "Open session" }).click();
  await row(page, "imported").waitFor();
  await page
    .getByRole("button", { name: /^Session/u })
    .getByText("from browser")
    .waitFor();
});

journey("The UI reports which entries of an imported session the limits will delete", async (bench) => {
  await bench.send("/orders?first");
  await bench.send("/orders?second");
  const sessions = await bench.weir.get<readonly { readonly id: string; readonly is_current: boolean }[]>("/sessions");
  const session = sessions.find(({ is_current: isCurrent }) => isCurrent);
  const document = await (await fetch(`${bench.weir.apiUrl}/api/sessions/${session?.id}/export?format=session`)).text();
  await callApi(bench.weir, "PATCH", "/config", { max_requests: 1 });
  const page = await bench.open("/traffic");
  const [chooser] = await Promise.all([
    page.waitForEvent("filechooser"),
    page.getByRole("button", { name: "Import", exact: true }).click(),
  ]);
  await chooser.setFiles({ name: "kept.json", mimeType: "application/json", buffer: Buffer.from(document) });
  await page
    .getByText("max_requests is 1: the oldest 1 of its 2 entries will be removed when this session becomes active")
    .waitFor();
});

/** Requests a URL with curl, whatever the result. */
async function fetchBy(...words: readonly string[]): Promise<void> {
  await new Promise<void>((resolve) => {
    execFile(curl.path, ["--silent", "--max-time", "20", ...words], () => resolve());
  });
}

async function tabs(page: Page): Promise<readonly string[]> {
  return (await page.getByRole("region", { name: "Request details" }).getByRole("tab").allInnerTexts()).map((text) =>
    text.replace(/\s.*$/su, ""),
  );
}

/** An origin whose stream stays open until the test ends it. */
async function startStream() {
  const open: ServerResponse[] = [];
  const server = createServer((request, response) => {
    request.resume();
    open.push(response);
    // Later than the display of the entry as waiting.
    setTimeout(() => response.writeHead(200, { "content-type": "text/event-stream" }).write("data: first\n\n"), 300);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/live`,
    end: () => open.forEach((response) => response.end()),
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

if (curl.skip === false) {
  journey("Tunnels, SOCKS and event streams are shown as such, without empty tabs", async (bench) => {
    const port = await freePort();
    await using stream = await startStream();
    await using weir = await startWeir({ args: ["--enable-socks", `--socks-port=${port}`] });
    const socks = `socks5h://127.0.0.1:${port}`;
    await fetchBy("--proxy", socks, `${bench.origin.url}/orders`);
    // The port is closed, and the system assigns it to no other process.
    await fetchBy("--proxy", socks, "http://127.0.0.1:1/");
    await fetch(`${weir.apiUrl}/api/config`, {
      method: "PATCH",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ passthrough_domains: ["localhost"] }),
    });
    await fetchBy("--proxytunnel", "--proxy", weir.proxyUrl, `http://localhost:${bench.origin.port}/orders`);
    const live = fetchBy("--no-buffer", "--proxy", weir.proxyUrl, stream.url);

    const page = await bench.open(`${weir.apiUrl}/traffic`, { viewport: { width: 1440, height: 900 } });
    const open = row(page, /\/live, 200, open$/u);
    await open.waitFor();
    await open.getByText("sse", { exact: true }).waitFor();
    const passed = row(page, `socks to 127.0.0.1, port ${bench.origin.port}, 200`);
    await passed.getByText("socks", { exact: true }).waitFor();
    const tunnel = row(page, `tunnel to localhost, port ${bench.origin.port}, 200`);
    await tunnel.getByText("tunnel", { exact: true }).waitFor();

    await page.getByRole("button", { name: /^Tunnel/u }).click();
    await waitForCount(page.getByRole("grid").locator("[data-index]"), 3);
    await passed.click();
    const pane = page.getByRole("region", { name: "Request details" });
    await pane.getByText("The client connected through SOCKS5.").waitFor();
    assert.deepEqual(await tabs(page), ["Overview", "Timing"]);
    await row(page, /^socks to 127\.0\.0\.1, .*failed/u).click();
    await pane.getByText("UPSTREAM_REFUSED").first().waitFor();
    await pane.getByRole("tab", { name: "Messages" }).click();
    await pane.getByText(/SOCKS5 reply 5/u).waitFor();
    await page.getByRole("button", { name: /^All/u }).click();

    stream.end();
    await row(page, /\/live, 200$/u).waitFor();
    await live;
  });
}
