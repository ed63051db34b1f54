// Shows data of the admin API that serves this page, and changes nothing. All data of the gateway become text nodes, never
// markup.

const POLL_MS = 5000;
const EVENTS_SHOWN = 50;
const byId = (id) => document.getElementById(id);

/** Integers beyond the range of exact doubles become bigints. */
const exact = (_, value, context) =>
  typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value) && context?.source
    ? BigInt(context.source)
    : value;

/** The response as JSON; undefined if this gateway lacks the resource, such as budgets without a store. */
async function read(path) {
  const response = await fetch(path, { headers: { accept: "application/json" }, cache: "no-store" });
  const body = JSON.parse(await response.text(), exact);
  if (response.ok) return body;
  if (response.status === 404) return undefined;
  throw new Error(body?.error?.message ?? `The response has status ${response.status}`);
}

function element(name, className, ...children) {
  const made = document.createElement(name);
  if (className !== "") made.className = className;
  made.append(...children);
  return made;
}

const cell = (text, className = "") => ({ content: String(text), className });
const state = (text, isGood) => cell(text, isGood ? "good" : "bad");

/** Replaces a table unless it is equal, to keep selections and scroll positions. */
function show(id, columns, rows, empty) {
  const container = byId(id);
  const next =
    rows.length === 0
      ? element("p", "empty", empty)
      : element(
          "table",
          "",
          element("thead", "", element("tr", "", ...columns.map((name, at) => headOf(name, rows[0]?.[at])))),
          element("tbody", "", ...rows.map((row) => rowOf(columns, row))),
        );
  if (container.firstElementChild?.isEqualNode(next)) return;
  container.replaceChildren(next);
}

/** Headings of number columns are right-aligned. */
function headOf(name, below) {
  return element("th", below.className.includes("number") ? "number" : "", name);
}

function rowOf(columns, row) {
  return element(
    "tr",
    "",
    ...row.map(({ content, className }, at) => {
      const made = element("td", className, content);
      made.dataset.label = columns[at];
      return made;
    }),
  );
}

function showFacts(facts) {
  const place = byId("facts");
  const next = facts.map(([name, value]) =>
    element("div", "", element("dt", "", name), element("dd", "", String(value))),
  );
  place.replaceChildren(...next);
}

function showUpstreams({ upstreams }) {
  const rows = upstreams.flatMap(({ name, breaker, endpoints }) =>
    endpoints.map((endpoint) => [
      cell(name),
      breaker === null ? cell("none", "quiet") : state(breaker.state.replace("_", " "), breaker.state === "closed"),
      cell(endpoint.endpoint, "code"),
      endpoint.draining ? cell("draining", "warn") : state(endpoint.health, endpoint.health === "healthy"),
      cell(endpoint.in_flight, "number"),
      cell(endpoint.connections, "number"),
    ]),
  );
  show("upstreams", ["Upstream", "Breaker", "Endpoint", "Health", "In flight", "Connections"], rows, "No upstreams");
}

function showBudgets(usage) {
  if (usage === undefined) {
    show("budgets", [], [], "Budgets are not enforced: the gateway runs without a state store (GATEWAY_STATE_DB)");
    return;
  }
  const rows = usage.consumers.flatMap(({ consumer, budgets }) =>
    budgets.map(({ budget, used, limit, remaining, reset_epoch_s: resetS }) => [
      cell(consumer),
      cell(budget),
      cell(remaining, BigInt(remaining) === 0n ? "number bad" : "number"),
      { content: meterOf(used, limit), className: "" },
      cell(`${new Date(resetS * 1000).toISOString().slice(0, 16).replace("T", " ")} UTC`, "quiet"),
    ]),
  );
  show("budgets", ["Consumer", "Budget", "Remaining", "Used", "Resets"], rows, "No consumer has a budget");
}

function meterOf(used, limit) {
  const meter = element("meter", "");
  const share = Number(used) / Number(limit);
  Object.assign(meter, { min: 0, max: 1, low: 0.8, high: 0.95, optimum: 0, value: Math.min(1, share) });
  const words = `${used} of ${limit}`;
  meter.setAttribute("aria-label", words);
  return element("div", "", meter, element("div", "quiet", words));
}

function showRoutes({ routes = [] }) {
  const rows = routes.map(
    ({ name, match = {}, action = {}, service, auth_required: needsKey, deprecation, maintenance }) => {
      const { path, host, methods } = match;
      const criteria = [
        host,
        methods?.join(" "),
        ...["headers", "query", "cookies", "accept"].filter((key) => key in match),
      ];
      const notes = [
        needsKey ? "authentication" : "",
        deprecation === undefined ? "" : "deprecated",
        maintenance === undefined ? "" : "maintenance",
      ];
      return [
        cell(name),
        cell(path === undefined ? "any path" : `${path.type} ${path.value}`, "code"),
        cell(criteria.filter(Boolean).join(", "), "quiet"),
        cell(action.type === "proxy" ? `to ${service}` : (action.type ?? "")),
        cell(notes.filter(Boolean).join(", "), "warn"),
      ];
    },
  );
  show("routes", ["Route", "Path", "Other criteria", "Action", "Notes"], rows, "No routes");
}

const BAD_KINDS = new Set(["breaker_opened", "endpoint_ejected", "config_rejected"]);
let events = [];

function showEvents() {
  const rows = events.slice(0, EVENTS_SHOWN).map(({ kind, timestamp, payload }) => [
    cell(timestamp.slice(0, 19).replace("T", " "), "quiet"),
    state(kind.replaceAll("_", " "), !BAD_KINDS.has(kind)),
    cell(
      Object.entries(payload)
        .filter(([name]) => name !== "content_hash")
        .map(([name, value]) => `${name.replaceAll("_", " ")} ${value}`)
        .join(", "),
      "long",
    ),
  ]);
  show("events", ["Time (UTC)", "Event", "Details"], rows, "No events");
}

function showWebhooks({ webhooks }) {
  const rows = webhooks.map(({ url, events: kinds, last }) => [
    cell(url, "code"),
    cell(kinds.map((kind) => kind.replaceAll("_", " ")).join(", "), "quiet"),
    last === undefined
      ? cell("none yet", "quiet")
      : state(
          `${last.outcome} in ${last.attempts} ${last.attempts === 1 ? "attempt" : "attempts"}${last.reason === "" ? "" : `: ${last.reason}`}`,
          last.outcome === "delivered",
        ),
  ]);
  show("webhooks", ["Target", "Events", "Last delivery"], rows, "No webhooks");
}

function showGenerations({ generations }) {
  const rows = generations.map(
    ({ generation, published_at: at, route_count: count, source, actor, is_running: runs }) => [
      cell(runs ? `${generation} (runs)` : generation, runs ? "good" : ""),
      cell(at.slice(0, 19).replace("T", " "), "quiet"),
      cell(count, "number"),
      cell(actor === null ? source : `${source}, ${actor}`),
    ],
  );
  show("generations", ["Generation", "Published (UTC)", "Routes", "Source"], rows, "No generations");
}

const uptime = (seconds) => {
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86_400)} d`;
};

/** The displayed generation with its time, because a gateway without a state store restarts at 1. */
let shownGeneration = "";

/** Reads everything; the document only if the generation changed. */
async function refresh() {
  const [version, stats, upstreams, usage, webhooks, latest, history] = await Promise.all(
    [
      "/version",
      "/stats",
      "/upstreams",
      "/quotas/usage",
      "/webhooks",
      `/events?limit=${EVENTS_SHOWN}`,
      "/config/generations?limit=10",
    ].map(read),
  );
  byId("version").textContent = `version ${version.version}, up ${uptime(version.uptime_seconds)}`;
  const endpoints = upstreams.upstreams.flatMap((upstream) => upstream.endpoints);
  const open = upstreams.upstreams.filter(({ breaker }) => breaker !== null && breaker.state !== "closed");
  showFacts([
    ["Generation", stats.config_generation],
    ["Requests in progress", stats.active_requests],
    ["Healthy endpoints", `${endpoints.filter(({ health }) => health === "healthy").length} of ${endpoints.length}`],
    ["Breakers not closed", open.length],
  ]);
  showUpstreams(upstreams);
  showBudgets(usage);
  showWebhooks(webhooks);
  events = latest.events;
  showEvents();
  const runs = history.generations.find(({ is_running: isRunning }) => isRunning);
  const generation = `${stats.config_generation} ${runs?.published_at} ${runs?.content_hash}`;
  if (generation !== shownGeneration) showRoutes(await read("/config"));
  shownGeneration = generation;
  showGenerations(history);
}

function say(stateName, text) {
  byId("live").dataset.state = stateName;
  byId("live-text").textContent = text;
}

let isLive = false;
let isReading = false;
let mustReadAgain = false;

/** Runs one refresh at a time; requests during it cause one more. */
async function update() {
  mustReadAgain = isReading;
  if (isReading) return;
  isReading = true;
  try {
    await refresh();
    byId("problem").hidden = true;
    say(isLive ? "live" : "polling", isLive ? "live" : `every ${POLL_MS / 1000} s`);
  } catch (error) {
    byId("problem").textContent = `Could not load data from the gateway: ${error.message}`;
    byId("problem").hidden = false;
    say("away", "not connected");
  } finally {
    isReading = false;
  }
  if (mustReadAgain) void update();
}

function listen() {
  const source = new EventSource("/events/stream");
  source.addEventListener("open", () => {
    isLive = true;
    void update();
  });
  // The browser reconnects by itself, unless the response was an error; polling continues anyway.
  source.addEventListener("error", () => {
    isLive = false;
    void update();
    if (source.readyState === EventSource.CLOSED) setTimeout(listen, 6 * POLL_MS);
  });
  for (const kind of [
    "breaker_opened",
    "breaker_half_open",
    "breaker_closed",
    "endpoint_ejected",
    "endpoint_recovered",
    "config_published",
    "config_rejected",
  ]) {
    source.addEventListener(kind, () => void update());
  }
}

void update();
listen();
setInterval(() => {
  if (!document.hidden) void update();
}, POLL_MS);
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) void update();
});
