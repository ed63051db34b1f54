import type { ScriptFilter, ScriptHook, ScriptTemplate } from "@headworks/capture-contract";

interface TemplateParts {
  readonly description: string;
  readonly hooks: ScriptHook[];
  readonly source: string;
  readonly filter?: ScriptFilter;
}

function template(name: string, { description, hooks, source, filter }: TemplateParts): ScriptTemplate {
  return {
    name,
    description,
    source: source.trimStart(),
    hooks,
    priority: 100,
    on_error: "stop_chain",
    ...(filter === undefined ? {} : { match_filter: filter }),
  };
}

/** Scripts to begin with; each changes something without being edited. */
export const SCRIPT_TEMPLATES: readonly ScriptTemplate[] = [
  template("Log Requests", {
    description: "Writes one line for each request and one for its response to the script's history",
    hooks: ["on_request", "on_response"],
    source: `
function onRequest(request) {
  console.log(request.method, request.url);
}

function onResponse(request, response) {
  const line = [response.statusCode, request.method, request.url, response.durationMs + " ms"];
  if (response.statusCode >= 500) console.error(...line);
  else console.log(...line);
}
`,
  }),
  template("Add CORS", {
    description: "Allows pages of any origin to read the responses, with cookies, and responds to preflights itself",
    hooks: ["on_request", "on_response"],
    source: `
const METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

function corsHeaders(request) {
  return {
    // With cookies, browsers do not accept "*".
    "Access-Control-Allow-Origin": request.headers.get("Origin") ?? "*",
    "Access-Control-Allow-Credentials": "true",
    "Access-Control-Allow-Methods": METHODS,
    "Access-Control-Allow-Headers": request.headers.get("Access-Control-Request-Headers") ?? "*",
    "Access-Control-Expose-Headers": "*",
    "Vary": "Origin",
  };
}

function onRequest(request) {
  const isPreflight = request.method === "OPTIONS" && request.headers.has("Access-Control-Request-Method");
  if (!isPreflight) return;
  const headers = { ...corsHeaders(request), "Access-Control-Max-Age": "600" };
  return { continue: false, response: { statusCode: 204, headers, body: "" } };
}

function onResponse(request, response) {
  if (!request.headers.has("Origin")) return;
  for (const [name, value] of Object.entries(corsHeaders(request))) response.headers.set(name, value);
}
`,
  }),
  template("Block Domains", {
    description: "Responds with 403 to requests for the listed domains and the names below them",
    hooks: ["on_request"],
    source: `
const BLOCKED = ["ads.example.com", "tracker.example.net"];

function onRequest(request) {
  const host = request.host.toLowerCase();
  const domain = BLOCKED.find((name) => host === name || host.endsWith("." + name));
  if (domain === undefined) return;
  console.warn("blocked", request.url);
  return {
    continue: false,
    response: { statusCode: 403, headers: { "Content-Type": "text/plain" }, body: "Blocked: " + domain + "\\n" },
  };
}
`,
  }),
  template("Modify Headers", {
    description: "Sets, appends and removes header fields of requests and responses",
    hooks: ["on_request", "on_response"],
    source: `
function onRequest(request) {
  request.headers.set("X-Debug", "1");
  request.headers.delete("DNT");
}

function onResponse(request, response) {
  response.headers.set("Cache-Control", "no-store");
  response.headers.append("X-Seen-By", "script");
  response.headers.delete("Server");
}
`,
  }),
  template("Mock API", {
    description: "Responds to some paths with JSON; all other requests reach the server",
    hooks: ["on_request"],
    source: `
const ROUTES = {
  "GET /api/health": () => json(200, { status: "ok" }),
  "GET /api/users": () => json(200, [{ id: 1, name: "Ada" }, { id: 2, name: "Grace" }]),
  "POST /api/users": (request) => json(201, { id: 3, ...request.json() }),
};

function json(statusCode, value) {
  return { statusCode, headers: { "Content-Type": "application/json" }, body: JSON.stringify(value) };
}

function onRequest(request) {
  const respond = ROUTES[request.method + " " + request.path];
  if (respond !== undefined) return { continue: false, response: respond(request) };
}
`,
  }),
  template("Inject Latency", {
    description: "Delays requests by a random time, to see how a client copes with slow servers",
    hooks: ["on_request"],
    source: `
const SHORTEST_MS = 200;
const LONGEST_MS = 800;

function onRequest() {
  return { delay: SHORTEST_MS + Math.round(Math.random() * (LONGEST_MS - SHORTEST_MS)) };
}
`,
  }),
  template("Rewrite URL", {
    description: "Sends the requests for one host and path to another",
    hooks: ["on_request"],
    source: `
const FROM = { host: "api.example.com", path: "/v1/" };
const TO = { scheme: "https", host: "staging.example.com", path: "/v2/" };

function onRequest(request) {
  const target = url.parse(request.url);
  if (target.host !== FROM.host || !target.path.startsWith(FROM.path)) return;
  const path = TO.path + target.path.slice(FROM.path.length);
  request.url = url.build({ scheme: TO.scheme, host: TO.host, path, query: target.query });
}
`,
  }),
  template("Inject Auth Token", {
    description: "Adds a bearer token to the requests that have no Authorization field",
    hooks: ["on_request"],
    // A token must not reach other servers.
    filter: { host_pattern: "api.example.com" },
    source: `
const TOKEN = "YOUR_TOKEN";

function onRequest(request) {
  if (!request.headers.has("Authorization")) request.headers.set("Authorization", "Bearer " + TOKEN);
}
`,
  }),
  template("Modify JSON Response", {
    description: "Changes members of JSON objects; other responses stay as they are",
    hooks: ["on_response"],
    source: `
function onResponse(request, response) {
  if (!/[/+]json\\b/i.test(response.contentType ?? "")) return;
  const value = response.json();
  if (value === null || typeof value !== "object" || Array.isArray(value)) return;
  value.debug = true;
  delete value.internal;
  response.setJson(value);
}
`,
  }),
  template("Override Status Code", {
    description: "Turns the first responses for each URL into 503, to test retries",
    hooks: ["on_response"],
    source: `
const FAILURES = 2;
const MOST_URLS = 1000;
const seen = new Map();

function onResponse(request, response) {
  const count = (seen.get(request.url) ?? 0) + 1;
  if (seen.size >= MOST_URLS) seen.clear();
  seen.set(request.url, count);
  if (count > FAILURES) return;
  console.info("failure", count, "of", FAILURES, request.url);
  response.statusCode = 503;
  response.statusMessage = "Service Unavailable";
  response.headers.set("Retry-After", "1");
}
`,
  }),
  template("Cache Buster", {
    description: "Makes each GET request reach the server, and forbids clients to store the response",
    hooks: ["on_request", "on_response"],
    source: `
function onRequest(request) {
  if (request.method !== "GET") return;
  request.headers.delete("If-None-Match");
  request.headers.delete("If-Modified-Since");
  request.headers.set("Cache-Control", "no-cache");
  // Caches on the way take it for another resource.
  request.query._ = String(Date.now());
}

function onResponse(request, response) {
  for (const name of ["ETag", "Last-Modified", "Expires", "Age"]) response.headers.delete(name);
  response.headers.set("Cache-Control", "no-store");
}
`,
  }),
  template("Strip Response Headers", {
    description: "Removes the fields that tell which software a server runs, and those that forbid framing",
    hooks: ["on_response"],
    source: `
const NAMES = [
  "Server",
  "X-Powered-By",
  "X-AspNet-Version",
  "Via",
  "X-Frame-Options",
  "Content-Security-Policy",
  "Strict-Transport-Security",
];

function onResponse(request, response) {
  for (const name of NAMES) response.headers.delete(name);
}
`,
  }),
  template("Conditional Mock", {
    description: "Responds itself to requests with a header field, query parameter or body of your choice",
    hooks: ["on_request"],
    source: `
function isMocked(request) {
  if (request.headers.get("X-Mock") === "true") return true;
  if (request.query.mock === "1") return true;
  return request.method === "POST" && (request.body ?? "").includes('"dryRun":true');
}

function onRequest(request, context) {
  if (!isMocked(request)) return;
  const body = JSON.stringify({ mocked: true, method: request.method, path: request.path, request: context.requestId });
  return { continue: false, response: { statusCode: 200, headers: { "Content-Type": "application/json" }, body } };
}
`,
  }),
];
