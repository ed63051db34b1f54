import type { Condition } from "@headworks/capture-contract";
import { literalPattern } from "./condition-draft.ts";

/** Parts of a captured request that a rule is created from. */
export interface RequestLine {
  readonly method: string;
  readonly url: string;
}

function parsed(url: string): URL | null {
  return URL.canParse(url) ? new URL(url) : null;
}

/** The condition matching similar requests: same method, host and path, any query. */
export function conditionForRequest({ method, url }: RequestLine): Condition {
  const at = parsed(url);
  if (at === null) return { type: "url_pattern", pattern: literalPattern("is", url) };
  return {
    type: "and",
    conditions: [
      { type: "method", method },
      { type: "host", pattern: literalPattern("is", at.hostname) },
      // Only a non-default port is part of the condition.
      ...(at.port === "" ? [] : [{ type: "port", port: Number(at.port) } as const]),
      { type: "path_pattern", pattern: literalPattern("is", at.pathname) },
    ],
  };
}

/** A recognisable default name: `GET api.example.com/orders`. */
export function nameForRequest({ method, url }: RequestLine): string {
  const at = parsed(url);
  const target = at === null ? url : `${at.host}${at.pathname === "/" ? "" : at.pathname}`;
  const name = `${method} ${target}`;
  return name.length > 100 ? `${name.slice(0, 99)}…` : name;
}

export function copyName(name: string): string {
  return `${name.slice(0, 240)} (copy)`;
}
