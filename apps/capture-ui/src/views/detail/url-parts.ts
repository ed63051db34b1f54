/** Part of a URL; `strong` parts are emphasised. */
export interface UrlPart {
  readonly text: string;
  readonly strong: boolean;
}

/** Splits a URL for display, emphasising host and parameter names. The parts join to the URL. */
export function urlParts(url: string): UrlPart[] {
  const match = /^([a-z][a-z\d+.-]*:\/\/)?([^/?#]*)([^?#]*)(\?[^#]*)?(#[\s\S]*)?$/iu.exec(url);
  if (match === null) return [{ text: url, strong: true }];
  const [, scheme = "", host = "", path = "", query = "", fragment = ""] = match;
  const parts: UrlPart[] = [
    { text: scheme, strong: false },
    { text: host, strong: true },
    { text: path, strong: false },
  ];
  if (query !== "") {
    parts.push({ text: "?", strong: false });
    for (const [index, pair] of query.slice(1).split("&").entries()) {
      const equals = pair.indexOf("=");
      if (index > 0) parts.push({ text: "&", strong: false });
      parts.push({ text: equals < 0 ? pair : pair.slice(0, equals + 1), strong: true });
      if (equals >= 0) parts.push({ text: pair.slice(equals + 1), strong: false });
    }
  }
  parts.push({ text: fragment, strong: false });
  return parts.filter((part) => part.text !== "");
}
