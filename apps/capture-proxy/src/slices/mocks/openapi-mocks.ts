import type { Condition } from "@headworks/capture-contract";
import { isJson } from "@headworks/http-fields";
import { isNumeric } from "@headworks/json";
import { escapedPattern } from "./captured-mock.ts";
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
import { filledResponse } from "./mock-rule.ts";
import { exampleOf, type Resolve } from "./schema-example.ts";

/** Placeholder for a variable of unknown value. */
const UNKNOWN = "{}";
const METHODS = ["get", "put", "post", "delete", "options", "head", "patch", "trace"] as const;

/**
 * Makes a rule for each path, method and response of an OpenAPI 3.0 or 3.1 document. Of an operation's responses the
 * first successful one is enabled; paths without parameters precede those with them. Nothing is fetched: references to
 * other documents count as absent.
 * @param baseUrl replaces the document's `servers`; null keeps them
 */
export function openApiMocks(document: unknown, baseUrl: string | null): ImportedMocks {
  const root = membersOf(document);
  const version = textOf(member(root, "openapi"));
  if (root === undefined || version === undefined) {
    const isOld = textOf(member(root, "swagger")) !== undefined;
    throw new ImportProblem(
      isOld ? "Swagger 2.0 is not supported; convert the document to OpenAPI 3" : "The document has no member openapi",
    );
  }
  if (!/^3\.[01](?:\.|$)/.test(version)) {
    throw new ImportProblem(`OpenAPI ${version.slice(0, 20)} is not supported; use 3.0 or 3.1`);
  }
  return new OpenApiReader(root, baseUrl).read();
}

class OpenApiReader {
  readonly #root: Members;
  readonly #baseUrl: string | null;
  readonly #collector = new ImportCollector();
  readonly #bases = new Map<unknown, ServerBase>();
  readonly #resolve: Resolve = (reference) => this.#target(reference);

  constructor(root: Members, baseUrl: string | null) {
    this.#root = root;
    this.#baseUrl = baseUrl;
  }

  read(): ImportedMocks {
    const paths = membersOf(member(this.#root, "paths"));
    if (paths === undefined) {
      const webhooks = namesOf(member(this.#root, "webhooks"));
      throw new ImportProblem(`The document has no paths${webhooks === "" ? "" : `, only webhooks: ${webhooks}`}`);
    }
    for (const [path, value] of Object.entries(paths)) {
      const item = this.#dereferenced(value);
      if (item === undefined || !path.startsWith("/")) {
        this.#collector.skip(`paths ${path.slice(0, 200)}: this is not a path with operations`);
        continue;
      }
      for (const method of METHODS) {
        const operation = membersOf(member(item, method));
        if (operation !== undefined) this.#operation(path, method.toUpperCase(), item, operation);
      }
    }
    for (const key of ["webhooks", "x-webhooks"]) this.#nameSent(key, member(this.#root, key));
    return this.#collector.done();
  }

  /** Warns of requests the described service sends itself: rules do not apply to them. */
  #nameSent(begin: string, value: unknown): void {
    const names = namesOf(value);
    if (names !== "") this.#collector.warn(`${begin} are left out, since the service sends them: ${names}`);
  }

  #operation(path: string, method: string, item: Members, operation: Members): void {
    const responses = Object.entries(membersOf(member(operation, "responses")) ?? {});
    if (responses.length === 0) return this.#collector.skip(`${method} ${path}: it has no responses`);
    const servers = [operation, item, this.#root].map((owner) => listOf(member(owner, "servers")));
    const condition = this.#condition(path, method, servers.find((list) => list.length > 0) ?? []);
    if (condition === undefined) return this.#collector.skip(`${method} ${path.slice(0, 200)}: the path is too long`);
    this.#nameSent(`${method} ${path.slice(0, 200)}: its callbacks`, member(operation, "callbacks"));
    const isSuccessful = responses.some(([code]) => (statusOf(code) ?? 500) < 400);
    const readable = responses.flatMap(([code, value]) => {
      const label = `${method} ${path.slice(0, 200)} -> ${code.slice(0, 50)}`;
      if (code === "default") {
        const status = isSuccessful || this.#isError(value) ? 500 : 200;
        this.#collector.warn(`${label}: it has no status, so its rule responds with ${status}`);
        return [{ code, status, response: this.#dereferenced(value) ?? {} }];
      }
      const status = statusOf(code);
      if (status !== undefined) return [{ code, status, response: this.#dereferenced(value) ?? {} }];
      if (!code.startsWith("x-")) this.#collector.skip(`${label}: a rule cannot have this status`);
      return [];
    });
    const chosen = readable.toSorted((a, b) => rank(a.status) - rank(b.status))[0];
    const parameters = path.match(/\{[^}]*\}/g)?.length ?? 0;
    for (const each of readable) {
      this.#collector.add(
        `OpenAPI: ${method} ${path} -> ${each.code}`,
        condition,
        this.#response(each.status, each.response, `${method} ${path} -> ${each.code}`),
        {
          enabled: each === chosen,
          priority: 100 + Math.min(parameters, 50),
          description: textOf(member(operation, "summary"))?.slice(0, 4096) ?? null,
          tags: listOf(member(operation, "tags"))
            .flatMap((tag) => textOf(tag)?.slice(0, 255) || [])
            .slice(0, 100),
        },
      );
    }
  }

  #condition(path: string, method: string, servers: readonly unknown[]): Condition | undefined {
    const bases = this.#baseUrl === null ? servers.map((server) => this.#base(server)) : [this.#base(this.#baseUrl)];
    const known = bases.length === 0 ? [{ host: undefined, prefix: "" }] : bases;
    const prefixes = [...new Set(known.map(({ prefix }) => prefix))];
    const begin = prefixes.length === 1 ? (prefixes[0] ?? "") : `(?:${prefixes.join("|")})`;
    const pattern = `^${begin}${pathPattern(path)}$`;
    if (pattern.length > 1000) return undefined;
    const hosts = [...new Set(known.map(({ host }) => host))].filter((host) => host !== undefined);
    const parts: Condition[] = [
      { type: "path_pattern", pattern },
      { type: "method", method },
    ];
    if (hosts.length < new Set(known.map(({ host }) => host)).size || hosts.length === 0) {
      return { type: "and", conditions: parts };
    }
    const patterns = hosts.map((host): Condition => ({ type: "host", pattern: `^${host}$` }));
    const [only] = patterns;
    const host: Condition = patterns.length === 1 && only !== undefined ? only : { type: "or", conditions: patterns };
    return { type: "and", conditions: [host, ...parts] };
  }

  /** Each server is parsed once, so that its warnings appear once. */
  #base(server: unknown): ServerBase {
    const base = this.#bases.get(server) ?? serverBase(server, (sentence) => this.#collector.warn(sentence));
    this.#bases.set(server, base);
    return base;
  }

  #isError(value: unknown): boolean {
    const response = this.#dereferenced(value);
    const contents = Object.entries(membersOf(member(response, "content")) ?? {});
    const schemas = contents.map(([, media]) => membersOf(member(membersOf(media), "schema")));
    const names = [
      member(membersOf(value), "$ref"),
      member(response, "description"),
      ...contents.map(([type]) => type),
      ...schemas.flatMap((schema) => [member(schema, "$ref"), member(this.#dereferenced(schema), "title")]),
    ];
    return names.some((name) => ERROR_WORDS.test(textOf(name) ?? ""));
  }

  #response(status: number, response: Members, label: string) {
    const headers: Record<string, string> = {};
    for (const [name, value] of Object.entries(membersOf(member(response, "headers")) ?? {})) {
      const header = this.#dereferenced(value);
      const example =
        header === undefined
          ? undefined
          : (this.#explicit(header, label) ?? exampleOf(member(header, "schema"), this.#resolve));
      const isScalar = ["string", "boolean"].includes(typeof example) || isNumeric(example);
      if (isScalar && /^[\w-]+$/.test(name)) {
        headers[name] = String(example).replace(/[\u0000-\u001f\u007f]/g, " ");
      } else {
        const reason = isScalar ? "since its name is invalid" : "since it has no scalar value";
        this.#collector.warn(`${label}: the header field ${name.slice(0, 100)} is left out, ${reason}`);
      }
    }
    const contents = Object.entries(membersOf(member(response, "content")) ?? {});
    const [type, media] = contents.find(([name]) => isJson(name)) ?? contents[0] ?? [];
    if (type === undefined) return filledResponse({ status_code: status, headers });
    this.#nameOthers(`${label}: of its media types`, type, contents);
    const body = this.#body(type, membersOf(media) ?? {}, label);
    if (body !== null) headers["Content-Type"] = type.includes("*") ? "application/json" : type;
    return filledResponse({ status_code: status, headers, body });
  }

  #body(type: string, media: Members, label: string): string | null {
    const explicit = this.#explicit(media, label);
    if (isJson(type) || type.includes("*")) {
      const value = explicit ?? exampleOf(member(media, "schema"), this.#resolve);
      return JSON.stringify(value, null, 2) ?? null;
    }
    if (explicit !== undefined) return typeof explicit === "string" ? explicit : JSON.stringify(explicit);
    const made = type.startsWith("text/") ? exampleOf(member(media, "schema"), this.#resolve) : undefined;
    if (typeof made === "string") return made;
    this.#collector.warn(`${label}: there is no example for ${type.slice(0, 100)}, so the body is empty`);
    return null;
  }

  #explicit(media: Members, label: string): unknown {
    if (Object.hasOwn(media, "example")) return media["example"];
    const examples = Object.entries(membersOf(member(media, "examples")) ?? {});
    for (const [name, value] of examples) {
      const example = this.#dereferenced(value);
      if (example !== undefined && Object.hasOwn(example, "value")) {
        this.#nameOthers(`${label}: of its examples`, name, examples);
        return example["value"];
      }
      if (textOf(member(example, "externalValue")) !== undefined) {
        this.#collector.warn("An external example was not fetched");
      }
    }
    return undefined;
  }

  #nameOthers(begin: string, given: string, entries: readonly (readonly [string, unknown])[]): void {
    const others = entries.flatMap(([name]) => (name === given ? [] : [name.slice(0, 100)]));
    if (others.length === 0) return;
    this.#collector.warn(`${begin} ${given.slice(0, 100)} is used; left out: ${others.join(", ")}`);
  }

  #dereferenced(value: unknown): Members | undefined {
    let present = value;
    for (let steps = 0; steps < 20; steps += 1) {
      const members = membersOf(present);
      const reference = textOf(member(members, "$ref"));
      if (reference === undefined) return members;
      present = this.#target(reference);
    }
    return undefined;
  }

  /** Resolves a JSON pointer (RFC 6901) in this document; other documents are not fetched. */
  #target(reference: string): unknown {
    if (!reference.startsWith("#/")) {
      this.#collector.warn(`${reference.slice(0, 200)} refers to another document, which is not fetched`);
      return undefined;
    }
    let value: unknown = this.#root;
    for (const step of reference.slice(2).split("/")) {
      const name = percentDecoded(step).replaceAll("~1", "/").replaceAll("~0", "~");
      value = Array.isArray(value) ? (value as readonly unknown[])[Number(name)] : member(membersOf(value), name);
    }
    if (value === undefined) this.#collector.warn(`${reference.slice(0, 200)} does not exist in this document`);
    return value;
  }
}

function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const ERROR_WORDS = /error|fail|(?<!de)fault|problem|exception|unexpected|invalid/i;

/** The names in an object, without extensions. */
function namesOf(value: unknown): string {
  return Object.keys(membersOf(value) ?? {})
    .flatMap((name) => (name.startsWith("x-") ? [] : [name.slice(0, 100)]))
    .join(", ");
}

function statusOf(code: string): number | undefined {
  if (/^[2-5]XX$/i.test(code)) return Number(code[0]) * 100;
  return /^[2-5]\d\d$/.test(code) ? Number(code) : undefined;
}

/** Successes first, then in numeric order. */
function rank(status: number): number {
  return status < 300 ? status : 1000 + status;
}

function pathPattern(path: string): string {
  const names = new Set<string>();
  return path
    .split(/(\{[^{}]*\})/)
    .map((part) => {
      if (!part.startsWith("{")) return escapedPattern(part);
      const name = part.slice(1, -1).replace(/[^A-Za-z0-9_]/g, "_");
      if (!/^[A-Za-z_]/.test(name) || names.has(name)) return "[^/]+";
      names.add(name);
      return `(?<${name}>[^/]+)`;
    })
    .join("");
}

/** The known parts of a server's address, as regular expressions without anchors. */
interface ServerBase {
  readonly host: string | undefined;
  readonly prefix: string;
}

/** Host and path of a server, or of an address given instead; a path alone applies to every host. */
function serverBase(server: unknown, warn: (sentence: string) => void): ServerBase {
  const members = membersOf(server);
  const url = textOf(server) ?? textOf(member(members, "url")) ?? "";
  const shown = `the server ${url.slice(0, 200)}`;
  const unknown = new Set<string>();
  const filled = url.replace(/\{([^{}]*)\}/g, (_, name: string) => {
    const value = variableOf(membersOf(member(membersOf(member(members, "variables")), name)));
    if (value === undefined) unknown.add(name.slice(0, 100));
    return value ?? UNKNOWN;
  });
  if (unknown.size === 1) {
    warn(`${shown}: its variable ${[...unknown][0]} has no default, so it matches anything`);
  } else if (unknown.size > 1) {
    warn(`${shown}: its variables ${[...unknown].join(", ")} have no default, so they match anything`);
  }
  const [, authority, path = ""] = /^(?:[^/?#]*:)?\/\/([^/?#]*)(.*)$/s.exec(filled) ?? [];
  if (authority !== undefined) {
    const host = hostOf(authority);
    if (host === undefined) warn(`${shown}: its host is invalid, so its rules match every host`);
    const isAny = host === undefined || host === UNKNOWN;
    return { host: isAny ? undefined : patternOf(host, UNKNOWN, ".+"), prefix: prefixOf(path) };
  }
  // A leading variable may be an address with its own path.
  if (filled.startsWith(UNKNOWN)) return { host: undefined, prefix: `.*${prefixOf(filled.slice(UNKNOWN.length))}` };
  return { host: undefined, prefix: prefixOf(filled) };
}

function variableOf(variable: Members | undefined): string | undefined {
  return [member(variable, "default"), listOf(member(variable, "enum"))[0]]
    .map((value) => (typeof value === "boolean" || isNumeric(value) ? String(value) : textOf(value)))
    .find((value) => value !== undefined);
}

/** The normalized host of an authority; undefined when invalid. */
function hostOf(authority: string): string | undefined {
  const host = authority.replace(/^.*@/s, "").replace(/:(?:\d*|\{\})$/, "");
  if (host.includes(UNKNOWN)) return host.toLowerCase();
  const parsed = host === "" ? null : URL.parse(`http://${host}/`);
  return parsed === null ? undefined : parsed.hostname.replace(/^\[|\]$/g, "");
}

function prefixOf(path: string): string {
  const { pathname } = new URL(`http://any.invalid/${path.replace(/^\/+/, "")}`);
  return patternOf(pathname.replace(/\/+$/, ""), encodeURI(UNKNOWN), "[^/]+");
}

function patternOf(text: string, unknown: string, anything: string): string {
  return text.split(unknown).map(escapedPattern).join(anything);
}
