import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createServer } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import type { Page } from "playwright-core";
import { peer } from "@headworks/testkit";
import { startWeir } from "./rig.ts";
import { row, uiFile, waitForCount } from "./ui-rig.ts";

const curl = peer("curl");
const journey = uiFile();

/** Asks for a URL with curl; resolves whatever comes of it. */
async function fetchBy(...words: readonly string[]): Promise<void> {
  await new Promise<void>((resolve) => {
    execFile(curl.path, ["--silent", "--max-time", "20", ...words], () => resolve());
  });
}

async function tabs(page: Page): Promise<readonly string[]> {
  return (await page.getByRole("region", { name: "Entry" }).getByRole("tab").allInnerTexts()).map((text) =>
    text.replace(/\s.*$/su, ""),
  );
}

/** An origin whose stream stays open until the client goes. */
async function startStream() {
  const server = createServer((request, response) => {
    request.resume();
    // Later than the entry is shown, which is as waiting.
    setTimeout(() => response.writeHead(200, { "content-type": "text/event-stream" }).write("data: first\n\n"), 300);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/live`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

if (curl.skip === false) {
  journey("Tunnels, SOCKS and event streams are shown for what they are, without empty tabs", async (bench) => {
    const gone = await startWeir();
    const port = gone.proxyPort;
    await gone.stop();
    await using stream = await startStream();
    await using weir = await startWeir({ args: ["--enable-socks", `--socks-port=${port}`] });
    const socks = `socks5h://127.0.0.1:${port}`;
    await fetchBy("--proxy", socks, `${bench.origin.url}/orders`);
    // Nobody listens there, and the system gives that port to nobody.
    await fetchBy("--proxy", socks, "http://127.0.0.1:1/");
    await fetch(`${weir.apiUrl}/api/config`, {
      method: "PATCH",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ passthrough_domains: ["localhost"] }),
    });
    await fetchBy("--proxytunnel", "--proxy", weir.proxyUrl, `http://localhost:${bench.origin.port}/orders`);
    const watching = new AbortController();
    const live = execFile(curl.path, ["--silent", "--no-buffer", "--proxy", weir.proxyUrl, stream.url], {
      signal: watching.signal,
    });
    live.on("error", () => undefined);

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
    const pane = page.getByRole("region", { name: "Entry" });
    await pane.getByText("The client came by SOCKS5.").waitFor();
    assert.deepEqual(await tabs(page), ["Overview", "Timing"]);
    await row(page, /^socks to 127\.0\.0\.1, .*failed/u).click();
    await pane.getByText("UPSTREAM_REFUSED").first().waitFor();
    await pane.getByRole("tab", { name: "Messages" }).click();
    await pane.getByText(/SOCKS5 reply 5/u).waitFor();
    await page.getByRole("button", { name: /^All/u }).click();

    watching.abort();
    await row(page, /\/live, failed|\/live, 200$/u).waitFor();
  });
}
