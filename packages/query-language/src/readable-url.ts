import { unicodeHost } from "@headworks/host-patterns";
import { percentDecoded, utf8Reading } from "@headworks/http-fields";

/**
 * Whether a text that is asked of a URL or a part of it can be there in encoded form only: percent-encoded, as the octets
 * of its UTF-8, or as A-labels. Then {@link READABLE} forms must be looked at too. In a pattern, escapes may stand for such
 * characters.
 */
export function asksReadable(asked: string, isPattern = false): boolean {
  return /[^\x21-\x7e]/u.test(asked) || (isPattern && /\\[uxp]/iu.test(asked));
}

/** The parts of a URL as people read and type them, made of what is sent. */
export const READABLE = { host: unicodeHost, path: readablePath, query: readableQuery, url: readableUrl } as const;

function readablePath(path: string): string {
  return percentDecoded(utf8Reading(path) ?? path);
}

function readableQuery(query: string): string {
  return readablePath(query.replaceAll("+", " "));
}

/** What a URL has that reads otherwise. */
const ENCODED = /[%+\u0080-\uffff]|xn--/i;

function readableUrl(url: string): string {
  if (!ENCODED.test(url)) return url;
  const [start = "", scheme = "", user = "", host = ""] = /^([^:/?#]+:\/\/)([^/?#@]*@)?([^:/?#[]*)/.exec(url) ?? [];
  const mark = url.indexOf("?");
  const pathEnd = mark === -1 ? url.length : mark;
  const query = mark === -1 ? "" : `?${readableQuery(url.slice(mark + 1))}`;
  return `${scheme}${user}${unicodeHost(host)}${readablePath(url.slice(start.length, pathEnd))}${query}`;
}
