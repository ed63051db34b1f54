// Tested by import-warnings.test.ts
import { isNumeric } from "@headworks/json";
import { escapedPattern } from "./captured-mock.ts";
import { listOf, member, membersOf, textOf } from "./imported-mocks.ts";
import type { Members } from "./imported-mocks.ts";

/** The known parts of a server's address, as regular expressions without anchors. */
export interface ServerBase {
  /** Undefined means every host. */
  readonly host: string | undefined;
  readonly prefix: string;
}

/** Placeholder for a variable of unknown value. */
const UNKNOWN = "{}";

/** Host and path of a server, or of an address given instead; a path alone applies to every host. */
export function serverBase(server: unknown, warn: (sentence: string) => void): ServerBase {
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
