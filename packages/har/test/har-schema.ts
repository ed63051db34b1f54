/** HAR 1.2 as a table with a validator, for tests. */

type Type = "string" | "number" | "boolean" | "time" | "object" | Shape | readonly [Shape];

/** Member names with their types; `?` marks an optional member. */
interface Shape {
  readonly [member: string]: Type;
}

const PAIR: Shape = { name: "string", value: "string", "comment?": "string" };

const COOKIE: Shape = {
  ...PAIR,
  "path?": "string",
  "domain?": "string",
  "expires?": "time",
  "httpOnly?": "boolean",
  "secure?": "boolean",
  // Not in HAR 1.2, but written by all browsers.
  "sameSite?": "string",
};

const PARAM: Shape = {
  name: "string",
  "value?": "string",
  "fileName?": "string",
  "contentType?": "string",
  "comment?": "string",
};

const ENTRY: Shape = {
  "pageref?": "string",
  startedDateTime: "time",
  time: "number",
  request: {
    method: "string",
    url: "string",
    httpVersion: "string",
    cookies: [COOKIE],
    headers: [PAIR],
    queryString: [PAIR],
    "postData?": { mimeType: "string", "params?": [PARAM], "text?": "string", "comment?": "string" },
    headersSize: "number",
    bodySize: "number",
    "comment?": "string",
  },
  response: {
    status: "number",
    statusText: "string",
    httpVersion: "string",
    cookies: [COOKIE],
    headers: [PAIR],
    content: {
      size: "number",
      "compression?": "number",
      mimeType: "string",
      "text?": "string",
      "encoding?": "string",
      "comment?": "string",
    },
    redirectURL: "string",
    headersSize: "number",
    bodySize: "number",
    "comment?": "string",
  },
  cache: { "beforeRequest?": "object", "afterRequest?": "object", "comment?": "string" },
  timings: {
    "blocked?": "number",
    "dns?": "number",
    "connect?": "number",
    send: "number",
    wait: "number",
    receive: "number",
    "ssl?": "number",
    "comment?": "string",
  },
  "serverIPAddress?": "string",
  "connection?": "string",
  "comment?": "string",
};

/** Violations of HAR 1.2; empty for a valid entry. */
export function problemsOf(entry: unknown): readonly string[] {
  const found = check(entry, ENTRY, "entry");
  return found.length > 0 ? found : checkTimes(entry);
}

function check(value: unknown, type: Type, place: string): readonly string[] {
  if (type === "time") {
    const isTime =
      typeof value === "string" && /^[+-]?\d{4,6}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/.test(value);
    return isTime ? [] : [`${place} is not an ISO 8601 time`];
  }
  if (type === "number") return typeof value === "number" && Number.isFinite(value) ? [] : [`${place} is not a number`];
  if (typeof type === "string") return typeof value === type ? [] : [`${place} is not a ${type}`];
  if (isList(type)) {
    if (!Array.isArray(value)) return [`${place} is not a list`];
    const items: readonly unknown[] = value;
    return items.flatMap((item, index) => check(item, type[0], `${place}[${index}]`));
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return [`${place} is not an object`];
  return checkMembers(new Map(Object.entries<unknown>({ ...value })), type, place);
}

function isList(type: Shape | readonly [Shape]): type is readonly [Shape] {
  return Array.isArray(type);
}

function checkMembers(members: ReadonlyMap<string, unknown>, shape: Shape, place: string): readonly string[] {
  const problems: string[] = [];
  const known = new Set<string>();
  for (const [written, type] of Object.entries(shape)) {
    const name = written.replace(/\?$/, "");
    known.add(name);
    if (members.has(name)) problems.push(...check(members.get(name), type, `${place}.${name}`));
    else if (name === written) problems.push(`${place}.${name} is missing`);
  }
  for (const name of members.keys()) {
    if (!known.has(name) && !name.startsWith("_")) problems.push(`${place}.${name} is not in HAR 1.2`);
  }
  return problems;
}

function checkTimes(entry: unknown): readonly string[] {
  const { time, timings }: { time?: unknown; timings?: object } = { ...(typeof entry === "object" ? entry : {}) };
  const ms = new Map(Object.entries<unknown>({ ...timings }));
  const problems = ["send", "wait", "receive"]
    .filter((name) => Number(ms.get(name)) < 0)
    .map((name) => `entry.timings.${name} is negative`);
  if (problems.length > 0) return problems;
  const sum = ["blocked", "dns", "connect", "send", "wait", "receive"].reduce(
    (total, name) => total + Math.max(0, Number(ms.get(name) ?? -1)),
    0,
  );
  return Math.abs(sum - Number(time)) < 1e-6 ? [] : ["entry.time is not the sum of the timings"];
}
