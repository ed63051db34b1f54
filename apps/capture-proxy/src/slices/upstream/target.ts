import { parseHostPort } from "@headworks/host-patterns";
import type { ProbeRequest } from "#exchange/route-probe.ts";

/** A target as people write it: a URL, or `host:port`. A sentence when it is neither. */
export function readTarget(written: string): ProbeRequest["target"] | string {
  const text = written.trim();
  if (!text.includes("://")) {
    const place = parseHostPort(text);
    if ("issue" in place) return `must be an http or https URL, or host:port. ${place.issue}`;
    if (place.port === undefined) return "must be an http or https URL, or host:port; the port is missing";
    return { host: place.host, port: place.port, secure: false, path: undefined };
  }
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== "http:" && url.protocol !== "https:")) {
    return "must be an http or https URL, or host:port";
  }
  const secure = url.protocol === "https:";
  const host = url.hostname.startsWith("[") ? url.hostname.slice(1, -1) : url.hostname;
  const port = url.port === "" ? (secure ? 443 : 80) : Number(url.port);
  if (port === 0) return "must not have port 0";
  return { host, port, secure, path: `${url.pathname}${url.search}` };
}
