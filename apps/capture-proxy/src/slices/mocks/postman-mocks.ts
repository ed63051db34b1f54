import type { Condition, MockResponse } from "@headworks/capture-contract";
import { encodeAsDeclared } from "@headworks/http-fields/content-coding";
import { isSameJson, readJson } from "@headworks/json";
import { parseCondition } from "@headworks/match-condition";
import { escapedPattern, responseOf } from "./captured-mock.ts";
import {
  ImportCollector,
  type ImportedMocks,
  ImportProblem,
  listOf,
  member,
  type Members,
  membersOf,
  textOf,
} from "./imported-mocks.ts";

const MAX_FOLDER_DEPTH = 32;

/**
 * Makes a rule for each saved response of a Postman collection 2.0 or 2.1; of several for one request the first is
 * enabled. Requests that differ only in their bodies are matched by body where a condition can express it. Variables of
 * the collection and its folders are substituted; others, and path variables, match anything up to the next slash.
 */
export function postmanMocks(document: unknown): ImportedMocks {
  const root = membersOf(document);
  const collection = membersOf(member(root, "collection")) ?? root;
  const items = member(collection, "item");
  if (!Array.isArray(items)) {
    throw new ImportProblem("The document has no list item, so it is not a Postman collection");
  }
  const schema = textOf(member(membersOf(member(collection, "info")), "schema")) ?? "";
  if (/\/v1\./.test(schema)) {
    throw new ImportProblem("Postman collections of version 1 are not supported; export it as v2.1");
  }
  const collector = new ImportCollector();
  const saved: SavedResponse[] = [];
  takeItems({ collector, saved }, items as readonly unknown[], variablesOf(collection, new Map()), 0);
  for (const { name, condition, response, enabled } of tellApart(saved, (sentence) => collector.warn(sentence))) {
    collector.add(name, condition, response, { enabled });
  }
  return collector.done();
}

/** Variables of a collection or folder; its own take precedence over inherited ones. */
function variablesOf(scope: Members | undefined, around: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  const variables = new Map(around);
  for (const variable of listOf(member(scope, "variable"))) {
    const members = membersOf(variable);
    const name = textOf(member(members, "key")) ?? textOf(member(members, "id"));
    const value = member(members, "value");
    if (member(members, "disabled") === true) continue;
    if (name !== undefined && ["string", "number"].includes(typeof value)) variables.set(name, String(value));
  }
  return variables;
}

interface Output {
  readonly collector: ImportCollector;
  readonly saved: SavedResponse[];
}

function takeItems(
  output: Output,
  items: readonly unknown[],
  variables: ReadonlyMap<string, string>,
  depth: number,
): void {
  if (depth > MAX_FOLDER_DEPTH) throw new ImportProblem(`Folders nest deeper than ${MAX_FOLDER_DEPTH}`);
  for (const value of items) {
    const item = membersOf(value);
    const inside = member(item, "item");
    if (Array.isArray(inside)) takeItems(output, inside, variablesOf(item, variables), depth + 1);
    else if (item !== undefined) takeRequest(output, item, variables);
  }
}

function takeRequest({ collector, saved }: Output, item: Members, variables: ReadonlyMap<string, string>): void {
  const name = textOf(member(item, "name")) ?? "request";
  const responses = listOf(member(item, "response"))
    .map(membersOf)
    .filter((each) => each !== undefined);
  if (responses.length === 0) return collector.skip(`${name.slice(0, 200)}: it has no saved response`);
  for (const [index, response] of responses.entries()) {
    // A saved response has its original request, which may differ from the item's.
    const request = member(response, "originalRequest") ?? member(item, "request");
    const requested = requestCondition(request ?? member(item, "request"), variables);
    if (requested === undefined) {
      collector.skip(`${name.slice(0, 200)}: its request has no URL that can be matched`);
      continue;
    }
    const warn = (sentence: string): void => collector.warn(`${name.slice(0, 200)}: ${sentence}`);
    const fields = fieldsOf(member(response, "header"), warn);
    const code = member(response, "code") ?? undefined;
    const status = statusOf(code);
    if (status === undefined) {
      const shown = typeof code === "number" ? `status ${code}` : "the status of its response";
      collector.skip(`${name.slice(0, 200)}: ${shown} cannot be mocked`);
      continue;
    }
    if (code === undefined) warn(`its response has no status, so the rule responds with ${status}`);
    if (requested.ignored.length > 0) warn(`its rule ignores the query parameters ${requested.ignored.join(", ")}`);
    const body = textOf(member(response, "body")) ?? "";
    const type = fields.find(([key]) => key.toLowerCase() === "content-type")?.[1];
    const method = textOf(member(membersOf(request ?? member(item, "request")), "method")) ?? "GET";
    const made = responseOf(status, fields, encodeAsDeclared(body, type), method);
    if (typeof made === "string") {
      collector.skip(`${name.slice(0, 200)}: ${made}`);
      continue;
    }
    const suffix = index === 0 ? "" : ` (${textOf(member(response, "name")) ?? index + 1})`;
    saved.push({
      name: `Postman: ${name}${suffix}`,
      condition: requested.condition,
      response: made,
      enabled: index === 0,
      sent: sentBody(member(membersOf(request), "body"), variables),
    });
  }
}

/** Postman allows a response without a status; undefined for an invalid one. */
function statusOf(code: unknown): number | undefined {
  if (code === undefined) return 200;
  return typeof code === "number" && code >= 200 && code <= 599 && Number.isInteger(code) ? code : undefined;
}

/** Response fields: a list of objects or lines, or lines in one text. Bodies are not encoded any more. */
function fieldsOf(header: unknown, warn: (sentence: string) => void): [string, string][] {
  const lines = textOf(header)
    ?.split(/\r?\n/)
    .filter((line) => line.trim() !== "");
  return (lines ?? listOf(header)).flatMap((field): [string, string][] => {
    const [, lineKey, lineValue] = /^([^:]+):(.*)$/s.exec(textOf(field) ?? "") ?? [];
    const key = lineKey?.trim() ?? textOf(member(membersOf(field), "key"));
    const value = lineValue?.trim() ?? textOf(member(membersOf(field), "value"));
    if (key === undefined || value === undefined) {
      warn("a header field of its response is left out, since it has no name or no value");
      return [];
    }
    return key.toLowerCase() === "content-encoding" ? [] : [[key, value]];
  });
}

interface RequestMatch {
  readonly condition: Condition;
  readonly ignored: readonly string[];
}

const MAX_PARAMETERS = 50;

function requestCondition(request: unknown, variables: ReadonlyMap<string, string>): RequestMatch | undefined {
  const members = membersOf(request);
  const url = textOf(request) ?? rawUrl(member(members, "url"));
  if (url === undefined || url === "") return undefined;
  const filled = filledIn(url, variables);
  const [address = "", query = ""] = filled.replace(/#.*$/s, "").split(/\?(.*)/s);
  const isAnyBase = address.startsWith("{{");
  const begin = isAnyBase ? "" : /^[a-z]+:\/\//i.test(address) ? "^" : "^[a-z]+://";
  const parts = address.replace(/\/+$/, "").split(/(\{\{[^{}]*\}\}|(?<=\/):[A-Za-z_]\w*)/);
  const pattern = parts
    .map((part, index) => {
      if (index === 0 && isAnyBase && part === "") return "";
      if (index % 2 === 0) return escapedPattern(part);
      return isAnyBase && index === 1 ? "" : "[^/]+";
    })
    .join("");
  const whole = `${begin}${pattern}/?(?:\\?.*)?$`;
  if (whole.length > 1000 || pattern === "") return undefined;
  const conditions: Condition[] = [{ type: "url_pattern", pattern: whole }];
  const ignored: string[] = [];
  for (const [index, parameter] of query.split("&").entries()) {
    if (parameter === "") continue;
    const [name = "", value] = parameter.split("=", 2).map((text) => decoded(text));
    const shown = name.slice(0, 100);
    if (name.includes("{{") || index >= MAX_PARAMETERS) {
      ignored.push(shown);
      continue;
    }
    const requested: Condition =
      value === undefined || value.includes("{{")
        ? { type: "query_param", name }
        : { type: "query_param", name, value };
    // The URL pattern accepts any query, so a parameter without a valid condition is left to it.
    if (parseCondition(requested).ok) conditions.push(requested);
    else ignored.push(shown);
  }
  const method = textOf(member(members, "method"))?.trim().slice(0, 64);
  return {
    condition: { type: "and", conditions: [...conditions, { type: "method", method: method || "GET" }] },
    ignored,
  };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return text;
  }
}

function rawUrl(url: unknown): string | undefined {
  const whole = textOf(url);
  if (whole !== undefined) return whole;
  const members = membersOf(url);
  const raw = textOf(member(members, "raw"));
  if (raw !== undefined) return raw;
  const host = member(members, "host");
  const path = member(members, "path");
  const joined = (value: unknown, by: string): string =>
    textOf(value) ??
    listOf(value)
      .map((part) => textOf(part) ?? textOf(member(membersOf(part), "value")) ?? "")
      .join(by);
  const address = `${joined(host, ".")}/${joined(path, "/")}`;
  if (address === "/") return undefined;
  const protocol = textOf(member(members, "protocol"));
  return protocol === undefined ? address : `${protocol}://${address}`;
}

interface SavedResponse {
  readonly name: string;
  /** Without the body. */
  readonly condition: Condition;
  readonly response: MockResponse;
  readonly enabled: boolean;
  readonly sent: SentBody;
}

/**
 * Adds body conditions to enabled responses that share a condition. Those without a possible body condition come last,
 * as the fallback. Of identical ones only the first ever responds, which causes a warning.
 */
function tellApart(saved: readonly SavedResponse[], warn: (sentence: string) => void): readonly SavedResponse[] {
  const groups = Map.groupBy(
    saved.filter(({ enabled }) => enabled),
    ({ condition }) => JSON.stringify(condition),
  );
  const changed = new Map<SavedResponse, SavedResponse>();
  const last = new Set<SavedResponse>();
  for (const group of groups.values()) {
    if (new Set(group.map(({ sent }) => sent.key)).size < 2) {
      warnOfSame(group, "are the same", warn);
      continue;
    }
    const matched = group.map((each) => ({ each, condition: withBody(each) }));
    for (const { each, condition } of matched) {
      if (condition === undefined) last.add(each);
      else changed.set(each, { ...each, condition });
    }
    const same = Map.groupBy(matched, ({ condition }) => JSON.stringify(condition) ?? "");
    for (const [condition, members] of same) {
      const reason = condition === "" ? "differ in bodies that no condition tells apart" : "are the same";
      warnOfSame(
        members.map(({ each }) => each),
        reason,
        warn,
      );
    }
  }
  return [...saved.filter((each) => !last.has(each)), ...last].map((each) => changed.get(each) ?? each);
}

function withBody({ condition, sent }: SavedResponse): Condition | undefined {
  if (sent.condition === undefined) return undefined;
  const both: Condition = { type: "and", conditions: [condition, sent.condition] };
  return parseCondition(both).ok ? both : undefined;
}

function warnOfSame(group: readonly SavedResponse[], reason: string, warn: (sentence: string) => void): void {
  const [first, ...others] = group.map(({ name }) => name.replace(/^Postman: /, "").slice(0, 100));
  if (first === undefined || others.length === 0) return;
  warn(`${[first, ...others].join(", ")}: these requests ${reason}, so that ${first} alone responds`);
}

interface SentBody {
  /** Equal for equal bodies; empty without one. */
  readonly key: string;
  /** Matches only this body; undefined when no condition can. */
  readonly condition: Condition | undefined;
}

function filledIn(text: string, variables: ReadonlyMap<string, string>): string {
  return text.replace(/\{\{([^{}]*)\}\}/g, (whole, name: string) => variables.get(name.trim()) ?? whole);
}

/**
 * Reads the member `body` of a request. Forms and files have no condition, since clients may encode them in many forms.
 */
function sentBody(body: unknown, variables: ReadonlyMap<string, string>): SentBody {
  const members = membersOf(body);
  const mode = textOf(member(members, "mode")) ?? "";
  const content = member(members, mode);
  if ((content ?? "") === "" || member(members, "disabled") === true) {
    return { key: "", condition: undefined };
  }
  const key = filledIn(JSON.stringify([mode, content]), variables);
  if (key.includes("{{")) return { key, condition: undefined };
  const text = mode === "raw" ? textOf(content) : undefined;
  if (text !== undefined) return { key, condition: rawCondition(filledIn(text, variables)) };
  if (mode === "graphql") return { key, condition: graphqlCondition(membersOf(content), variables) };
  return { key, condition: undefined };
}

function rawCondition(text: string): Condition {
  const value = jsonOf(text);
  if (value !== undefined) return { type: "json_path", path: "$", value };
  return { type: "body_pattern", pattern: `^${escapedPattern(text)}$` };
}

function graphqlCondition(content: Members | undefined, variables: ReadonlyMap<string, string>): Condition | undefined {
  const query = textOf(member(content, "query"));
  if (query === undefined) return undefined;
  const requested: Condition = { type: "json_path", path: "$.query", value: filledIn(query, variables) };
  const written = textOf(member(content, "variables"))?.trim() ?? "";
  if (written === "") return requested;
  const value = jsonOf(filledIn(written, variables));
  if (value === undefined) return undefined;
  return { type: "and", conditions: [requested, { type: "json_path", path: "$.variables", value }] };
}

/** Undefined for invalid JSON, and for numbers that would lose digits. */
function jsonOf(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return isSameJson(value, readJson(text)) ? value : undefined;
  } catch {
    return undefined;
  }
}
