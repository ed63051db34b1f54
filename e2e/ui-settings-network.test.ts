import assert from "node:assert/strict";
import type { Locator, Page } from "playwright-core";
import { proxyClient } from "@headworks/testkit";
import { freePort } from "./proxy-processes.ts";
import { startWeir } from "./rig.ts";
import { barrierCheck } from "./ui-barriers.ts";
import { callApi, eventually, uiFile } from "./ui-rig.ts";

const journey = uiFile();

/** A section of Settings, by its anchor. */
function section(page: Page, id: string): Locator {
  return page.locator(`#${id}`);
}

async function save(card: Locator): Promise<void> {
  await card.getByRole("button", { name: "Save", exact: true }).click();
  await card.getByRole("button", { name: "Save", exact: true }).waitFor({ state: "detached" });
}

journey(
  "An upstream proxy is configured, tested before it is used, and tested again after it is gone",
  async (bench) => {
    await using proxy = await startWeir();
    const page = await bench.open("/settings");
    const card = section(page, "upstream-proxy");
    await card.getByRole("status").getByText("Off: servers are contacted directly").waitFor();
    const test = card.getByRole("form", { name: "Upstream proxy test" });
    assert.equal(await test.getByRole("button", { name: "Test" }).isDisabled(), true);
    await card.getByRole("textbox", { name: "Host", exact: true }).fill("127.0.0.1");
    await card.getByRole("textbox", { name: "Port", exact: true }).fill(String(proxy.proxyPort));
    await card.getByRole("switch", { name: "Use an upstream proxy" }).click();
    await save(card);
    await card.getByRole("status").getByText("after restart").waitFor();
    assert.equal(await card.getByText("restart required").count(), 3);

    await test.getByRole("textbox", { name: "Test connection to" }).fill(`${bench.origin.url}/orders`);
    await test.getByRole("button", { name: "Test" }).click();
    const found = test.getByRole("group", { name: "Test result" });
    await found.getByRole("status").getByText("Reached in").waitFor();
    assert.ok((await found.getByRole("listitem").count()) >= 2);
    assert.equal(await found.getByRole("img", { name: "Failed" }).count(), 0);

    // The port is closed now.
    await proxy.stop();
    await test.getByRole("button", { name: "Test" }).click();
    await found.getByRole("alert").getByText("UPSTREAM_PROXY_UNREACHABLE").waitFor();
    await found.getByRole("status").getByText("Not reached").waitFor();
    await test.getByRole("textbox", { name: "Test connection to" }).fill("what is this");
    await test.getByRole("button", { name: "Test" }).click();
    await test
      .getByRole("alert")
      .getByText(/host:port/u)
      .waitFor();
    await callApi(bench.weir, "PATCH", "/config", { upstream_proxy: { enabled: false, host: "", port: 0 } });
    await card.getByRole("status").getByText("Off: servers are contacted directly").waitFor();
  },
);

journey("Errors of the upstream proxy are shown in Settings and in the entry", async (bench) => {
  // The port is closed, and the system assigns it to no other process.
  await using weir = await startWeir({ args: ["--upstream-proxy=127.0.0.1:1"] });
  const page = await bench.open(`${weir.apiUrl}/settings`);
  const card = section(page, "upstream-proxy");
  await card.getByRole("status").getByText("through http://127.0.0.1:1").waitFor();
  assert.equal((await proxyClient(weir.proxyPort).fetch(`${bench.origin.url}/orders`)).status, 502);
  await card.getByRole("alert").getByText("The upstream proxy is failing").waitFor();
  await card.getByRole("link", { name: "show request" }).click();
  const entry = page.getByRole("region", { name: "Request details" });
  await entry.getByText("The upstream proxy failed").first().waitFor();
  await entry.getByRole("tab", { name: "Overview" }).click();
  await entry.getByRole("link", { name: "Upstream proxy settings" }).click();
  await page.getByRole("heading", { level: 1, name: "Settings" }).waitFor();
  await eventually("the section in sight", async () => {
    const box = await card.boundingBox();
    return box !== null && box.y >= 0 && box.y < 300;
  });
});

journey("The SOCKS listener is enabled for the next start, and its address is shown", async (bench) => {
  const page = await bench.open("/settings");
  const card = section(page, "socks");
  await card.getByRole("status").getByText("Off: SOCKS clients cannot connect").waitFor();
  await card.getByRole("switch", { name: "SOCKS5 listener" }).click();
  await save(card);
  await card.getByRole("status").getByText("enabled after a restart").waitFor();
  await card.getByText("restart required").waitFor();
  await callApi(bench.weir, "PATCH", "/config", { enable_socks: false });
  await card.getByRole("status").getByText("Off: SOCKS clients cannot connect").waitFor();
});

journey("A running SOCKS listener shows its address, and a warning if it is open to the network", async (bench) => {
  const port = await freePort();
  await using weir = await startWeir({ args: ["--enable-socks", `--socks-port=${port}`, "--host=0.0.0.0"] });
  const page = await bench.open(`${weir.apiUrl}/settings`);
  const card = section(page, "socks");
  await card.getByRole("status").getByText(`Accepting clients on port ${port}, without a password`).waitFor();
  await card.getByText(new RegExp(`^socks5h://.+:${port}$`, "u")).waitFor();
  await card.getByRole("alert").getByText("Any host that can reach this machine").waitFor();
  await callApi(weir, "PATCH", "/config", { allowed_ips: ["10.0.0.0/8"] });
  await eventually("the warning goes", async () => (await card.getByRole("alert").count()) === 0);
});

journey("The sections of Settings have no serious accessibility violation, in either theme", async (bench) => {
  await using proxy = await startWeir();
  await callApi(bench.weir, "PATCH", "/config", { upstream_proxy: { host: "127.0.0.1", port: proxy.proxyPort } });
  const page = await bench.open("/settings", { reducedMotion: "reduce", viewport: { width: 1440, height: 900 } });
  const { found, check } = barrierCheck(page);
  const test = page.getByRole("form", { name: "Upstream proxy test" });
  await test.getByRole("textbox", { name: "Test connection to" }).fill(`${bench.origin.url}/orders`);
  await test.getByRole("button", { name: "Test" }).click();
  await test.getByText("Reached in").waitFor();
  await check("all sections, a test that passed");
  await proxy.stop();
  await test.getByRole("button", { name: "Test" }).click();
  await test.getByRole("alert").waitFor();
  await check("a test that failed");
  await page.getByRole("button", { name: "Import…" }).click();
  const dialog = page.getByRole("dialog", { name: "Import rules" });
  const file = { name: "rules.json", mimeType: "application/json" };
  const choose = dialog.getByLabel("File", { exact: true });
  await choose.setInputFiles({ ...file, buffer: Buffer.from('{"version":1,"focus":[],"rewrites":[]}') });
  await dialog.getByRole("button", { name: "Preview" }).click();
  await dialog.getByRole("table", { name: "Rules by kind" }).waitFor();
  await check("what an import changes");
  await choose.setInputFiles({ ...file, buffer: Buffer.from('{"version":1,"focus":{}}') });
  await dialog.getByRole("button", { name: "Preview" }).click();
  await dialog.getByRole("alert").waitFor();
  await check("an import that is refused");
  assert.deepEqual(found, {});
  await callApi(bench.weir, "PATCH", "/config", { upstream_proxy: { host: "", port: 0 } });
});
