import type { HarCookie, HarPair } from "./har.ts";

/** Values of the header fields with that lower-case name, in order. */
export function fieldValues(fields: readonly string[], lowerName: string): readonly string[] {
  return headerPairs(fields)
    .filter(({ name }) => name.toLowerCase() === lowerName)
    .map(({ value }) => value);
}

/** A flat list of fields as HAR pairs. */
export function headerPairs(fields: readonly string[]): readonly HarPair[] {
  const pairs: HarPair[] = [];
  for (let index = 0; index < fields.length; index += 2) {
    pairs.push({ name: fields[index] ?? "", value: fields[index + 1] ?? "" });
  }
  return pairs;
}

/** Bytes of a field section on the wire in HTTP/1.1, the empty line included. */
export function fieldSectionBytes(fields: readonly string[]): number {
  return headerPairs(fields).reduce((sum, { name, value }) => sum + name.length + value.length + 4, 2);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return text;
  }
}

/** Parameters of a query or an urlencoded form, decoded; what is not decodable stays as written. */
export function formPairs(text: string): readonly HarPair[] {
  return text
    .split("&")
    .filter((pair) => pair !== "")
    .map((pair) => {
      const equals = pair.indexOf("=");
      if (equals === -1) return { name: decoded(pair), value: "" };
      return { name: decoded(pair.slice(0, equals)), value: decoded(pair.slice(equals + 1)) };
    });
}

/** Query parameters of a URL. */
export function queryPairs(url: string): readonly HarPair[] {
  const [withoutFragment = ""] = url.split("#", 1);
  const question = withoutFragment.indexOf("?");
  return question === -1 ? [] : formPairs(withoutFragment.slice(question + 1));
}

function cookiePair(text: string): HarPair | undefined {
  const equals = text.indexOf("=");
  if (text.trim() === "" || equals === -1) return undefined;
  return { name: text.slice(0, equals).trim(), value: text.slice(equals + 1).trim() };
}

/** Cookies that a client sent (RFC 6265 section 4.2). */
export function requestCookies(fields: readonly string[]): readonly HarCookie[] {
  return fieldValues(fields, "cookie")
    .flatMap((value) => value.split(";"))
    .map(cookiePair)
    .filter((cookie) => cookie !== undefined);
}

/** Cookies that a server set (RFC 6265 section 4.1). `startedMs` is what Max-Age counts from. */
export function responseCookies(fields: readonly string[], startedMs: number): readonly HarCookie[] {
  return fieldValues(fields, "set-cookie").flatMap((value): HarCookie[] => {
    const [first = "", ...attributes] = value.split(";");
    const pair = cookiePair(first);
    return pair === undefined ? [] : [{ ...pair, ...cookieAttributes(attributes, startedMs) }];
  });
}

function cookieAttributes(attributes: readonly string[], startedMs: number): Omit<HarCookie, "name" | "value"> {
  const found = new Map<string, string>();
  for (const attribute of attributes) {
    const equals = attribute.indexOf("=");
    const name = (equals === -1 ? attribute : attribute.slice(0, equals)).trim().toLowerCase();
    found.set(name, equals === -1 ? "" : attribute.slice(equals + 1).trim());
  }
  const path = found.get("path");
  const domain = found.get("domain");
  const sameSite = found.get("samesite");
  const expires = expiry(found.get("max-age"), found.get("expires"), startedMs);
  return {
    ...(path !== undefined && { path }),
    ...(domain !== undefined && { domain }),
    ...(expires !== undefined && { expires }),
    httpOnly: found.has("httponly"),
    secure: found.has("secure"),
    ...(sameSite !== undefined && { sameSite }),
  };
}

/** Max-Age wins over Expires (RFC 6265 section 5.3). */
function expiry(maxAge: string | undefined, expires: string | undefined, startedMs: number): string | undefined {
  const age = maxAge !== undefined && /^-?\d+$/.test(maxAge) ? startedMs + Number(maxAge) * 1000 : undefined;
  const time = age ?? (expires === undefined ? Number.NaN : Date.parse(expires));
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString();
}
