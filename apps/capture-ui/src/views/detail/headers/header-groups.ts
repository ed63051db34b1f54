import { utf8Reading } from "@headworks/http-fields";

/** A received header and its index in the message. */
export interface HeaderLine {
  readonly position: number;
  readonly name: string;
  /** Octets as Latin-1, one character each. */
  readonly value: string;
  /** The octets decoded as UTF-8, if that differs. */
  readonly reading: string | undefined;
  readonly occurrences: number;
}

export interface HeaderGroup {
  readonly title: string;
  readonly lines: readonly HeaderLine[];
}

const GROUPS: readonly (readonly [title: string, pattern: RegExp])[] = [
  [
    "Request and routing",
    /^(?::.*|host|origin|referer|forwarded|via|x-forwarded-.*|x-real-ip|user-agent|from|expect|upgrade|connection|location)$/u,
  ],
  [
    "Content",
    /^(?:content-(?!security).*|transfer-encoding|trailer|te|range|accept-ranges|accept.*|last-modified|link)$/u,
  ],
  [
    "Caching",
    /^(?:cache-control|age|expires|pragma|etag|vary|if-.*|date|cdn-cache-control|x-cache.*|cf-cache-status)$/u,
  ],
  [
    "Credentials and cookies",
    /^(?:authorization|proxy-auth.*|www-authenticate|cookie|set-cookie|x-api-key|x-csrf-token|x-auth-.*)$/u,
  ],
  [
    "Security",
    /^(?:content-security-policy.*|strict-transport-security|x-frame-options|x-content-type-options|x-xss-protection|referrer-policy|permissions-policy|cross-origin-.*|access-control-.*|clear-site-data|sec-fetch-.*)$/u,
  ],
  ["Client hints", /^(?:sec-ch-.*|accept-ch|dnt|sec-gpc|save-data|priority)$/u],
];

/** Headers in wire order; `search` filters by name or value, in either decoding. */
export function headerLines(headers: readonly (readonly [string, string])[], search = ""): HeaderLine[] {
  const counts = new Map<string, number>();
  for (const [name] of headers) counts.set(name.toLowerCase(), (counts.get(name.toLowerCase()) ?? 0) + 1);
  const needle = search.trim().toLowerCase();
  return headers.flatMap(([name, value], position) => {
    const reading = utf8Reading(value);
    const isAsked =
      needle === "" || [name, value, reading].some((text) => text?.toLowerCase().includes(needle) === true);
    return isAsked ? [{ position, name, value, reading, occurrences: counts.get(name.toLowerCase()) ?? 1 }] : [];
  });
}

/** Headers by topic, in wire order within a group. Empty groups are omitted. */
export function groupHeaders(lines: readonly HeaderLine[]): HeaderGroup[] {
  const byTitle = new Map<string, HeaderLine[]>();
  for (const line of lines) {
    const name = line.name.toLowerCase();
    // Accept-CH concerns client hints despite its prefix.
    const title =
      name === "accept-ch" ? "Client hints" : (GROUPS.find(([, pattern]) => pattern.test(name))?.[0] ?? "Other");
    const group = byTitle.get(title);
    if (group === undefined) byTitle.set(title, [line]);
    else group.push(line);
  }
  return [...GROUPS.map(([title]) => title), "Other"].flatMap((title) => {
    const group = byTitle.get(title);
    return group === undefined ? [] : [{ title, lines: group }];
  });
}

/** The headers as HTTP/1.1 lines, for the clipboard. */
export function headersAsText(headers: readonly (readonly [string, string])[]): string {
  return headers.map(([name, value]) => `${name}: ${value}`).join("\n");
}

export function headerValues(headers: readonly (readonly [string, string])[], name: string): string[] {
  return headers.flatMap(([key, value]) => (key.toLowerCase() === name ? [value] : []));
}
