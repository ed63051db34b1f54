import assert from "node:assert/strict";
import type { IncomingMessage, ServerResponse } from "node:http";
import { callApi, eventually, openRow, row, uiFile, waitForCount } from "./ui-rig.ts";
import { site } from "./ui-site.ts";

let counted = 0;

/** The shop of all journeys, and a counter with changing responses. */
function handler(request: IncomingMessage, response: ServerResponse): void {
  if (request.url?.startsWith("/count") !== true) {
    site(request, response);
    return;
  }
  counted += 1;
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify({ count: counted, place: request.headers["x-place"] ?? "nowhere" }));
}

const journey = uiFile(handler);

journey("A captured request is edited and resent, and its response compared with the original", async (bench) => {
  await bench.send("/count");
  const page = await bench.open("/traffic");
  await openRow(page, "/count");
  await page.keyboard.press("e");
  await page.getByRole("heading", { name: /^GET 127\.0\.0\.1/u }).waitFor();
  await page.getByRole("button", { name: "Add header" }).click();
  await page
    .getByRole("textbox", { name: /^Header name/u })
    .last()
    .fill("X-Place");
  await page.getByRole("textbox", { name: "Value of X-Place" }).fill("here");
  await page.getByRole("button", { name: "Send edited" }).click();
  const outcome = page.getByRole("region", { name: "Response", exact: true });
  await outcome.getByText('"place": "here"').waitFor();
  await outcome.getByRole("link", { name: "Compare with original" }).click();
  const changes = page.getByRole("table", { name: "Response body" });
  await changes
    .getByRole("row", { name: /\/place/u })
    .getByText('"here"')
    .waitFor();
  await page.getByText("Requests are different, responses are different").waitFor();
  await page.getByRole("textbox", { name: "Ignore JSON paths" }).fill("$.place, $.count");
  await page.keyboard.press("Enter");
  await page.getByText("responses are identical").waitFor();
  assert.match(page.url(), /paths=/u);
  // Edits that were sent are not saved.
  const saved =
    await bench.weir.get<readonly { readonly request: { readonly headers_list: unknown } }[]>("/replay/saved");
  assert.doesNotMatch(JSON.stringify(saved), /X-Place/iu);
});

journey("A new request with a variable is saved, sent, and listed in its history", async (bench) => {
  const page = await bench.open("/replay");
  await page.getByRole("button", { name: "New request", exact: true }).first().click();
  await page.getByRole("textbox", { name: "Name", exact: true }).fill("Anything");
  await page.getByRole("textbox", { name: "Collection" }).fill("Shop");
  await page.getByRole("textbox", { name: "URL" }).fill(`${bench.origin.url}/anything/{{id}}`);
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page
    .getByRole("list", { name: "Shop" })
    .getByRole("button", { name: /^Anything/u })
    .waitFor();
  await page.getByRole("textbox", { name: "{{id}}" }).fill("17");
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await page.getByRole("region", { name: "Response", exact: true }).getByText("you asked for /anything/17").waitFor();
  // Saving resets the draft, but keeps the values of its variables.
  await page.getByRole("textbox", { name: "Name", exact: true }).fill("Anything else");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByRole("heading", { name: "Anything else" }).waitFor();
  assert.equal(await page.getByRole("textbox", { name: "{{id}}" }).inputValue(), "17");
  // An unsaved request is saved when it is sent, and shows the response all the same.
  await page.getByRole("button", { name: "New request", exact: true }).first().click();
  await page.getByRole("heading", { name: "New request" }).waitFor();
  await page.getByRole("textbox", { name: "URL" }).fill(`${bench.origin.url}/never-saved`);
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await page.getByRole("region", { name: "Response", exact: true }).getByText("you asked for /never-saved").waitFor();
  await page
    .getByRole("list", { name: "Shop" })
    .getByRole("button", { name: /^Anything/u })
    .click();
  await page.getByRole("region", { name: "Response", exact: true }).getByText("you asked for /anything/17").waitFor();
  await page.getByRole("tab", { name: "History" }).click();
  await waitForCount(page.getByRole("table", { name: "Replays" }).getByRole("row"), 2);
});

journey(
  "A request is saved once by its first Send, also if sending fails or the user leaves the screen",
  async (bench) => {
    const url = `${bench.origin.url}/first/{{id}}`;
    const saved = async () => {
      const list = await bench.weir.get<readonly { readonly request: { readonly url: string } }[]>("/replay/saved");
      return list.filter(({ request }) => request.url.startsWith(`${bench.origin.url}/first/`)).length;
    };
    const page = await bench.open("/replay");
    await page.getByRole("button", { name: "New request", exact: true }).first().click();
    await page.getByRole("textbox", { name: "URL" }).fill(url);
    await page.getByRole("textbox", { name: "{{id}}" }).fill("17");
    const execute = "**/api/replay/execute/*";
    await page.route(execute, async (route) => await route.abort("connectionreset"));
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await page.getByText("Request saved, but not sent").waitFor();
    await page.unroute(execute);
    await page.getByRole("heading", { name: /^GET/u }).waitFor();
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await page.getByRole("region", { name: "Response", exact: true }).getByText("you asked for /first/17").waitFor();
    assert.equal(await saved(), 1);

    const late = Promise.withResolvers<void>();
    await page.route(execute, async (route) => {
      await late.promise;
      await route.continue();
    });
    await page.getByRole("button", { name: "New request", exact: true }).first().click();
    await page.getByRole("heading", { name: "New request" }).waitFor();
    await page.getByRole("textbox", { name: "URL" }).fill(`${bench.origin.url}/first/late`);
    const requested = page.waitForRequest(execute);
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await requested;
    assert.equal(await page.getByRole("button", { name: "Save", exact: true }).isDisabled(), true);
    await page.getByRole("link", { name: "Sessions", exact: true }).click();
    await page.getByRole("heading", { name: "Sessions", level: 1 }).waitFor();
    const executed = page.waitForResponse(execute);
    late.resolve();
    await (await executed).finished();
    await eventually("it is sent", async () => (await bench.weir.entries("/first/late")).length === 1);
    await page.getByRole("link", { name: "Replay", exact: true }).click();
    await page
      .getByRole("button", { name: /first\/late/u })
      .first()
      .waitFor();
    await page.getByRole("button", { name: "New request", exact: true }).first().click();
    assert.equal(await page.getByRole("textbox", { name: "URL" }).inputValue(), "");
    assert.equal(new URL(page.url()).search, "");
    assert.equal(await saved(), 2);
  },
);

journey("A browser that reports no network shows and changes the service's data", async (bench) => {
  const page = await bench.open("/replay");
  await page.evaluate("dispatchEvent(new Event('offline'))");
  await page.getByRole("button", { name: "New request", exact: true }).first().click();
  await page.getByRole("textbox", { name: "Name", exact: true }).fill("Offline");
  await page.getByRole("textbox", { name: "Collection" }).fill("Aeroplane");
  await page.getByRole("textbox", { name: "URL" }).fill(`${bench.origin.url}/anything`);
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page
    .getByRole("list", { name: "Aeroplane" })
    .getByRole("button", { name: /^Offline/u })
    .waitFor();
  await page.getByRole("link", { name: "Block", exact: true }).click();
  await page.getByText("No blocked hosts").waitFor();
});

journey("A batch runs, shows its durations, and is stopped", async (bench) => {
  await bench.send("/count?batch");
  const page = await bench.open("/traffic");
  await row(page, "/count?batch").click({ button: "right" });
  await page.getByRole("menuitem", { name: "Edit and resend…" }).click();
  await page.getByRole("tab", { name: "Batch" }).click();
  await page.getByRole("textbox", { name: "Requests", exact: true }).fill("30");
  await page.getByRole("button", { name: "Start batch" }).click();
  await page.getByText("Done: 30 of 30").waitFor();
  await page
    .getByRole("table", { name: "Statuses" })
    .getByRole("row", { name: /200 30 100 %/u })
    .waitFor();
  await page.getByRole("img", { name: /: \d+/u }).waitFor();
  await page.getByRole("textbox", { name: "Requests", exact: true }).fill("5000");
  await page.getByRole("textbox", { name: "Delay between requests, ms" }).fill("50");
  await page.getByRole("button", { name: "Start batch" }).click();
  await page.getByRole("button", { name: "Stop", exact: true }).click();
  await page.getByText(/^Stopped: /u).waitFor();
});

journey("Two selected rows are compared, and other items of their menu create rules", async (bench) => {
  await bench.send("/count?one", "/count?two");
  const page = await bench.open("/traffic");
  await row(page, "?one").click();
  await row(page, "?two").click({ modifiers: ["Control"] });
  await page.keyboard.press("d");
  await page.getByRole("table", { name: "Request line" }).getByText("count?two").waitFor();
  await page.goBack();
  await row(page, "?one").click({ button: "right" });
  await page.getByRole("menuitem", { name: "Breakpoint" }).click();
  await page.getByRole("menuitem", { name: "For their responses…" }).click();
  const dialog = page.getByRole("dialog", { name: "New breakpoint" });
  assert.match(
    await dialog.getByRole("textbox", { name: "Name" }).first().inputValue(),
    /^GET 127\.0\.0\.1:\d+\/count$/u,
  );
  assert.equal(await dialog.getByRole("radio", { name: "Response" }).getAttribute("aria-checked"), "true");
  await dialog.getByText("Matches 2 of the last").waitFor();
  await page.keyboard.press("Escape");
  await waitForCount(dialog, 0);
  await page.goBack();
  await row(page, "?one").click({ button: "right" });
  await page.getByRole("menuitem", { name: "Rewrite similar requests…" }).click();
  const editor = page.getByRole("form", { name: "New rewrite" });
  await eventually("the rule's name", async () => {
    const name = await editor.getByRole("textbox", { name: "Name" }).first().inputValue();
    return /^Rewrite GET .*\/count$/u.test(name);
  });
});

journey("Throttling is enabled in the top bar, adjusted for one host, and disabled", async (bench) => {
  const page = await bench.open("/traffic");
  await page.getByRole("button", { name: "Throttle", exact: true }).click();
  await page.getByRole("menuitem", { name: "Slow 3G" }).click();
  await page.getByRole("banner").getByRole("button", { name: "Throttle: Slow 3G" }).click();
  await page.getByRole("menuitem", { name: "More…" }).click();
  const form = page.getByRole("form", { name: "Profile" });
  await form.getByRole("heading", { name: "Profile: Slow 3G" }).waitFor();
  await form.getByRole("textbox", { name: "Latency, ms" }).fill("soon");
  await form.getByRole("alert").waitFor();
  await form.getByRole("textbox", { name: "Latency, ms" }).fill("400");
  await form.getByRole("textbox", { name: "Jitter, ± ms" }).fill("0");
  await form.getByRole("slider", { name: "Download dial" }).press("End");
  await form.getByRole("textbox", { name: "Only for these hosts" }).fill("127.0.0.1");
  await page.keyboard.press("Enter");
  await form.getByRole("list", { name: "Hosts" }).getByText("127.0.0.1").waitFor();
  await form.getByRole("button", { name: "Apply" }).click();
  await page.getByRole("banner").getByRole("button", { name: "Throttle: Custom" }).waitFor();
  const { profile } = await bench.weir.get<{ readonly profile: object }>("/throttle");
  assert.partialDeepStrictEqual(profile, { latency_ms: 400, jitter_ms: 0, download_bps: 0, hosts: ["127.0.0.1"] });
  const before = performance.now();
  await bench.client.fetch(`${bench.origin.url}/orders`);
  assert.ok(performance.now() - before >= 399);
  await page.getByRole("img", { name: /^Download .*upload /u }).waitFor();
  await page.getByText("1 delayed").waitFor();
  await page.getByRole("switch", { name: "On" }).click();
  await page.getByRole("banner").getByRole("button", { name: "Throttle", exact: true }).waitFor();
  assert.equal((await bench.weir.get<{ readonly enabled: boolean }>("/throttle")).enabled, false);
});

journey(
  "Two sessions are compared request by request, and a changed response links to its comparison",
  async (bench) => {
    const before = (await bench.weir.get<readonly { id: string; is_current: boolean }[]>("/sessions")).find(
      ({ is_current }) => is_current,
    );
    assert.ok(before);
    await callApi(bench.weir, "PATCH", `/sessions/${before.id}`, { name: "Before" });
    await bench.send("/count");
    await bench.send("/anything/left");
    const { id } = (await callApi(bench.weir, "POST", "/sessions", { name: "After" })) as { id: string };
    await callApi(bench.weir, "POST", `/sessions/${id}/switch`);
    await bench.send("/count");
    await bench.send("/anything/right");
    const page = await bench.open("/sessions");
    await page.getByRole("button", { name: "More actions for Before" }).click();
    await page.getByRole("menuitem", { name: "Compare with the active session" }).click();
    await page.getByRole("heading", { name: "Compare sessions" }).waitFor();
    await page
      .getByRole("table", { name: "Only left" })
      .getByText(/\/anything\/left$/u)
      .waitFor();
    await page
      .getByRole("table", { name: "Only right" })
      .getByText(/\/anything\/right$/u)
      .waitFor();
    await page
      .getByRole("table", { name: "Changed" })
      .getByRole("link", { name: /\/count$/u })
      .click();
    await page.getByRole("heading", { name: "Comparison" }).waitFor();
    const sides = page.getByRole("group", { name: "Comparison" }).getByRole("link", { name: /^#\d+ GET \/count, / });
    await waitForCount(sides, 2);
    const [left, right] = await sides.allTextContents();
    assert.notEqual(left, right, "the names of the sides differ");
    await page
      .getByRole("table", { name: "Response body" })
      .getByRole("row", { name: /\/count/u })
      .waitFor();
  },
);

journey("A deleted saved request can be restored, and its history cleared", async (bench) => {
  const body = { name: "Keep me", collection: "Shop", request: { method: "GET", url: `${bench.origin.url}/count` } };
  const { id } = (await callApi(bench.weir, "POST", "/replay/saved", body)) as { readonly id: string };
  await callApi(bench.weir, "POST", `/replay/execute/${id}`, {});
  const page = await bench.open(`/replay?id=${id}`);
  await page.getByRole("tab", { name: "History" }).click();
  await page.getByRole("button", { name: "Clear history" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Clear" }).click();
  await page.getByText("Not sent yet").waitFor();
  await page.getByRole("button", { name: "Delete Keep me" }).click();
  await page.getByRole("region", { name: "Notifications" }).getByRole("button", { name: "Undo" }).click();
  await page
    .getByRole("list", { name: "Shop" })
    .getByRole("button", { name: /^Keep me/u })
    .waitFor();
});
