import type { Locator, Page } from "playwright-core";

/** A screen in one state. */
export interface Scene {
  /** Also the name of the picture file. */
  readonly name: string;
  readonly path: string;
  /** With a Weir without traffic. */
  readonly isEmpty?: boolean;
  /** Runs before the page is opened, for example to make API calls fail. */
  readonly before?: (page: Page) => Promise<void>;
  /** Runs after it; rejects if the scene cannot be reached. */
  readonly arrange?: (page: Page, isNarrow: boolean) => Promise<void>;
}

const TABS = ["Overview", "Messages", "Params", "Cookies", "Timing"] as const;

const row = (page: Page, text: string): Locator =>
  page.getByRole("grid", { name: "Captured traffic" }).getByRole("row", { name: text }).first();

async function openEntry(page: Page, text: string): Promise<Locator> {
  await row(page, text).click();
  const pane = page.getByRole("region", { name: "Entry" });
  await pane.getByRole("heading", { level: 1 }).filter({ hasText: text }).waitFor();
  // The pointer would show a tooltip.
  await page.mouse.move(2, 2);
  return pane;
}

function detail(
  name: string,
  entry: string,
  tab: (typeof TABS)[number],
  then?: (pane: Locator) => Promise<void>,
): Scene {
  return {
    name: `detail-${name}`,
    path: "/traffic",
    arrange: async (page) => {
      const pane = await openEntry(page, entry);
      await pane.getByRole("tab", { name: new RegExp(`^${tab}`, "u") }).click();
      await then?.(pane);
    },
  };
}

const view =
  (name: string, side = "response") =>
  async (pane: Locator): Promise<void> =>
    await pane
      .getByRole("region", { name: `Body of the ${side}` })
      .getByRole("radio", { name, exact: true })
      .click();

/** Makes API calls fail like an internal error. */
const failing =
  (path: string) =>
  async (page: Page): Promise<void> => {
    const json = { error: "The store cannot be read: disk I/O error", code: "INTERNAL_ERROR" };
    await page.route(`**/api${path}`, async (route) => await route.fulfill({ status: 500, json }));
  };

/** An error is shown after the retries have failed. */
const alerted = async (page: Page): Promise<void> => await page.getByRole("alert").first().waitFor();

const press =
  (key: string, role: "dialog" | "menu" = "dialog") =>
  async (page: Page): Promise<void> => {
    await page.getByRole("navigation", { name: "Screens" }).waitFor();
    await page.waitForLoadState("networkidle");
    await page.keyboard.press(key);
    await page.getByRole(role).waitFor();
  };

const click =
  (name: string | RegExp, role: "button" | "menuitem" = "button") =>
  async (page: Page): Promise<void> =>
    await page.getByRole(role, { name }).first().click();

const TRAFFIC: readonly Scene[] = [
  { name: "traffic", path: "/traffic" },
  { name: "traffic-empty", path: "/traffic", isEmpty: true },
  { name: "traffic-tree", path: "/traffic?mode=tree" },
  { name: "traffic-waterfall", path: "/traffic?mode=waterfall" },
  { name: "traffic-filtered", path: "/traffic?q=status%3A%3E%3D400" },
  { name: "traffic-no-match", path: "/traffic?q=host%3Anowhere" },
  { name: "traffic-bad-filter", path: "/traffic?q=status%3A%3E%3D" },
  {
    name: "traffic-completion",
    path: "/traffic",
    arrange: async (page) => {
      await page.getByRole("combobox", { name: "Filter" }).pressSequentially("st");
      await page.getByRole("listbox").waitFor();
    },
  },
  {
    name: "traffic-completion-values",
    path: "/traffic",
    arrange: async (page) => {
      await page.getByRole("combobox", { name: "Filter" }).pressSequentially("host:");
      await page.getByRole("listbox").waitFor();
    },
  },
  {
    name: "traffic-row-menu",
    path: "/traffic",
    arrange: async (page) => {
      await row(page, "/form").click({ button: "right" });
      await page.getByRole("menu").waitFor();
    },
  },
  { name: "traffic-error", path: "/traffic", before: failing("/traffic/rows*"), arrange: alerted },
  {
    name: "traffic-selection",
    path: "/traffic",
    arrange: async (page) => {
      await row(page, "/form").waitFor();
      await page.getByRole("grid").focus();
      for (const key of ["ArrowDown", "Shift+ArrowDown", "Shift+ArrowDown"]) await page.keyboard.press(key);
    },
  },
  {
    name: "traffic-offline",
    path: "/traffic",
    before: async (page) => await page.routeWebSocket(/\/ws/u, async (socket) => await socket.close()),
    arrange: async (page) => await page.getByText("Offline").or(page.getByText("Reconnecting")).first().waitFor(),
  },
  { name: "traffic-clear", path: "/traffic", arrange: click("Clear the session") },
  {
    name: "traffic-display",
    path: "/traffic",
    arrange: async (page) => {
      await click("Display")(page);
      await page.getByRole("menu").waitFor();
    },
  },
  {
    name: "traffic-sessions-menu",
    path: "/traffic",
    arrange: click(/^Session/u),
  },
  {
    name: "traffic-save-view",
    path: "/traffic?q=status%3A%3E%3D400",
    arrange: async (page, isNarrow) => (isNarrow ? undefined : await click("Save view")(page)),
  },
];

const DETAILS: readonly Scene[] = [
  ...TABS.map((tab) => detail(tab.toLowerCase(), "/api/orders", tab)),
  detail("tree", "/api/orders", "Messages", view("Tree")),
  detail("table", "/api/orders", "Messages", view("Table")),
  detail("raw", "/api/orders", "Messages", view("Raw")),
  detail("hex", "/bytes", "Messages"),
  detail("html", "/page", "Messages"),
  detail("preview", "/page", "Messages", view("Preview")),
  detail("picture", "/lamp.svg", "Messages"),
  detail("form", "/form", "Messages"),
  detail("parts", "/parts", "Messages"),
  detail("invalid-json", "/broken.json", "Messages"),
  detail("no-body", "/empty", "Messages"),
  detail("failed", "/reset", "Messages"),
  detail("failed-overview", "/reset", "Overview"),
  detail("search", "/api/orders", "Messages", async (pane) => {
    const body = pane.getByRole("region", { name: "Body of the response" });
    await body.getByRole("button", { name: "Search in the body" }).click();
    await body.getByRole("textbox", { name: "Search in the body" }).fill("neighbour");
    await body.getByText(/^1 of/u).waitFor();
  }),
  {
    name: "detail-below",
    path: "/traffic",
    arrange: async (page, isNarrow) => {
      await openEntry(page, "/api/orders");
      if (!isNarrow) await click("Details below")(page);
    },
  },
  { name: "detail-gone", path: "/traffic?id=00000000-0000-7000-8000-000000000000" },
  {
    name: "detail-note",
    path: "/traffic",
    arrange: async (page) => {
      await row(page, "/form").click({ button: "right" });
      await page.getByRole("menuitem", { name: /note/iu }).click();
      await page.getByRole("dialog").waitFor();
    },
  },
];

const SCREENS: readonly Scene[] = [
  { name: "sessions", path: "/sessions" },
  { name: "sessions-new", path: "/sessions", arrange: click(/New session/u) },
  { name: "sessions-error", path: "/sessions", before: failing("/sessions"), arrange: alerted },
  { name: "blocklist", path: "/blocklist" },
  { name: "blocklist-empty", path: "/blocklist", isEmpty: true },
  { name: "blocklist-dialog", path: "/blocklist", arrange: click(/^(?:Add|Block|New)/u) },
  { name: "blocklist-error", path: "/blocklist", before: failing("/blocklist"), arrange: alerted },
  { name: "focus", path: "/focus" },
  { name: "focus-empty", path: "/focus", isEmpty: true },
  { name: "connect", path: "/connect" },
  {
    name: "connect-end",
    path: "/connect",
    arrange: async (page) => {
      await page.getByText("Test now").waitFor();
      await page.evaluate("for (const each of document.querySelectorAll('*')) each.scrollTop = 1e6");
    },
  },
  { name: "setup-page", path: "/setup" },
  { name: "settings", path: "/settings" },
  {
    name: "settings-middle",
    path: "/settings",
    arrange: async (page) => {
      await page.getByText("Entries kept", { exact: true }).waitFor();
      await page.evaluate("for (const each of document.querySelectorAll('*')) each.scrollTop = 900");
    },
  },
  {
    name: "settings-end",
    path: "/settings",
    arrange: async (page) => {
      await page.getByText("Entries kept", { exact: true }).waitFor();
      await page.evaluate("for (const each of document.querySelectorAll('*')) each.scrollTop = 1e6");
    },
  },
  { name: "settings-error", path: "/settings", before: failing("/config/fields"), arrange: alerted },
  { name: "palette", path: "/traffic", arrange: press("Control+k") },
  { name: "keys", path: "/traffic", arrange: press("?") },
  { name: "no-such-page", path: "/nowhere" },
];

/** All scenes. */
export const SCENES: readonly Scene[] = [...TRAFFIC, ...DETAILS, ...SCREENS];
