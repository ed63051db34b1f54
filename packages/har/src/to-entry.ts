import {
  bodyHarText,
  bodyText,
  fromHarTimings,
  multipartParams,
  ownBodyRecord,
  ownFacts,
  type OwnRecord,
  sameTimings,
  toBase64,
  toHarTimings,
  totalMs,
} from "./entry-parts.ts";
import type {
  ContentDecoder,
  HarBody,
  HarContent,
  HarCookie,
  HarEntry,
  HarExchange,
  HarExchangeRequest,
  HarExchangeResponse,
  HarPair,
  HarParam,
  HarPostData,
  HarRequest,
  HarResponse,
  HarWebSocketMessage,
} from "./har.ts";

/** A decoded body, or the original if decoding fails. */
interface ShownBody {
  readonly bytes: Uint8Array;
  readonly isDecoded: boolean;
  readonly comment: string | undefined;
}

/**
 * Writes an exchange as an interoperable HAR 1.2 entry. `_weir` holds what HAR cannot express, so that `fromHarEntry`
 * restores the exchange; raw body bytes are included only if the decoded text does not determine them. `decode` removes
 * content codings.
 */
export function toHarEntry(exchange: HarExchange, decode: ContentDecoder): HarEntry {
  const { request, response, serverAddress, connectionId, note, webSocketMessages, weir } = exchange;
  const sent = shownBody(request.body, request.fields, decode);
  const received = shownBody(response?.body, response?.fields ?? [], decode);
  const timings = toHarTimings(exchange.timings);
  const serverIPAddress = serverAddress === undefined ? undefined : withoutPort(serverAddress);
  const requestRecord = ownBodyRecord(request.body, sent?.isDecoded ?? false);
  const responseRecord = ownBodyRecord(response?.body, received?.isDecoded ?? false);
  const { messages, controlFrames } = harMessages(webSocketMessages ?? []);
  const own: OwnRecord = {
    ...ownFacts(exchange),
    ...(serverAddress !== undefined && serverAddress !== serverIPAddress && { serverAddress }),
    ...(!sameTimings(fromHarTimings(timings), exchange.timings) && { timings: exchange.timings }),
    ...(controlFrames.length > 0 && { controlFrames }),
    ...(requestRecord && { request: requestRecord }),
    ...(responseRecord && { response: responseRecord }),
  };
  return {
    startedDateTime: new Date(exchange.startedMs).toISOString(),
    time: totalMs(timings),
    request: harRequest(request, sent),
    response: response === undefined ? noResponse(weir.failure) : harResponse(response, received, exchange.startedMs),
    cache: {},
    timings,
    ...(serverIPAddress !== undefined && { serverIPAddress }),
    ...(connectionId !== undefined && { connection: connectionId }),
    ...(note !== undefined && { comment: note }),
    ...(webSocketMessages && { _webSocketMessages: messages }),
    _weir: own,
  };
}

function shownBody(
  body: HarBody | undefined,
  fields: readonly string[],
  decode: ContentDecoder,
): ShownBody | undefined {
  if (body === undefined) return undefined;
  const { bytes, isTruncated, transferredBytes } = body;
  const comments: string[] = [];
  if (isTruncated) {
    comments.push(
      `only the first ${bytes.length}${transferredBytes === undefined ? "" : ` of ${transferredBytes}`} bytes were captured`,
    );
  }
  const coding = fieldValues(fields, "content-encoding").join(", ").trim();
  const needsDecoding = body.isEncoded && coding !== "" && coding.toLowerCase() !== "identity";
  const decoded = needsDecoding ? decode(bytes, coding) : undefined;
  if (needsDecoding && decoded === undefined) comments.push(`the content coding ${coding} could not be removed`);
  return {
    bytes: decoded ?? bytes,
    isDecoded: decoded !== undefined,
    comment: comments.length === 0 ? undefined : comments.join("; "),
  };
}

const NOT_CAPTURED = "the body was not captured";

function contentType({ fields, mediaType = "" }: HarExchangeRequest | HarExchangeResponse): string {
  return fieldValues(fields, "content-type")[0] ?? mediaType;
}

function isHttp1(version: string): boolean {
  return /^HTTP\/1\.[01]$/.test(version);
}

function harRequest(request: HarExchangeRequest, body: ShownBody | undefined): HarRequest {
  const { method, url, httpVersion, fields } = request;
  const target =
    method === "CONNECT"
      ? withoutScheme(url)
      : url.replace(/^[A-Za-z][A-Za-z0-9+.-]*:\/\/[^/?#]*/, "").replace(/#.*$/s, "") || "/";
  const line = method.length + target.length + httpVersion.length + 4;
  return {
    method,
    url,
    httpVersion,
    cookies: requestCookies(fields),
    headers: headerPairs(fields),
    queryString: queryPairs(url),
    ...(body && { postData: harPostData(body, contentType(request)) }),
    headersSize: isHttp1(httpVersion) ? line + fieldSectionBytes(fields) : -1,
    bodySize: request.body === undefined ? (request.missingBodyBytes ?? 0) : (request.body.transferredBytes ?? -1),
    // HAR's only member for a body without text.
    ...(body === undefined && request.missingBodyBytes !== undefined && { comment: NOT_CAPTURED }),
  };
}

function withoutScheme(url: string): string {
  return url.replace(/^[A-Za-z][A-Za-z0-9+.-]*:\/\//, "").replace(/\/.*$/s, "");
}

function harPostData(body: ShownBody, mimeType: string): HarPostData {
  const { text, isBase64 } = bodyHarText(body.bytes, mimeType);
  const params = formParams(body.bytes, mimeType);
  return {
    mimeType,
    text,
    ...(params.length > 0 && { params }),
    ...(isBase64 && { _encoding: "base64" as const }),
    ...(body.comment !== undefined && { comment: body.comment }),
  };
}

/** Larger forms are written as text only: their parameter list would be larger still. */
const MAX_FORM_SIZE = 16 * 1024 * 1024;

function formParams(bytes: Uint8Array, mimeType: string): readonly HarParam[] {
  if (bytes.length > MAX_FORM_SIZE) return [];
  const text = (): string => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1");
  if (/^\s*application\/x-www-form-urlencoded\b/i.test(mimeType)) return formPairs(text());
  return /^\s*multipart\/form-data\b/i.test(mimeType) ? multipartParams(text(), mimeType) : [];
}

function noResponse(failure: string | undefined): HarResponse {
  return {
    status: 0,
    statusText: "",
    httpVersion: "",
    cookies: [],
    headers: [],
    content: { size: 0, mimeType: "" },
    redirectURL: "",
    headersSize: -1,
    bodySize: -1,
    ...(failure !== undefined && { _error: failure }),
  };
}

function harResponse(response: HarExchangeResponse, body: ShownBody | undefined, startedMs: number): HarResponse {
  const { status, reason, httpVersion, fields } = response;
  const line = httpVersion.length + String(status).length + reason.length + 4;
  return {
    status,
    statusText: reason,
    httpVersion,
    cookies: responseCookies(fields, startedMs),
    headers: headerPairs(fields),
    content: harContent(response, body),
    redirectURL: fieldValues(fields, "location")[0] ?? "",
    headersSize: isHttp1(httpVersion) ? line + fieldSectionBytes(fields) : -1,
    bodySize: response.body === undefined ? (response.missingBodyBytes ?? -1) : (response.body.transferredBytes ?? -1),
  };
}

function harContent(response: HarExchangeResponse, body: ShownBody | undefined): HarContent {
  const mimeType = contentType(response);
  if (body === undefined) {
    const missing = response.missingBodyBytes;
    return { size: missing ?? 0, mimeType, ...(missing !== undefined && { comment: NOT_CAPTURED }) };
  }
  const { text, isBase64 } = bodyHarText(body.bytes, mimeType);
  const kept = response.body?.bytes.length ?? 0;
  return {
    size: body.bytes.length,
    ...(body.isDecoded && response.body?.isTruncated === false && { compression: body.bytes.length - kept }),
    mimeType,
    text,
    ...(isBase64 && { encoding: "base64" as const }),
    ...(body.comment !== undefined && { comment: body.comment }),
  };
}

/** Removes port and brackets. */
function withoutPort(address: string): string {
  return /^\[(.+)\](?::\d+)?$/.exec(address)?.[1] ?? /^([^:]+):\d+$/.exec(address)?.[1] ?? address;
}

const FIRST_CONTROL_OPCODE = 8;

/** Separates control frames, which Chrome does not treat as messages. */
function harMessages(all: readonly HarWebSocketMessage[]): {
  readonly messages: readonly Readonly<Record<string, unknown>>[];
  readonly controlFrames: readonly Readonly<Record<string, unknown>>[];
} {
  const messages: Readonly<Record<string, unknown>>[] = [];
  const controlFrames: Readonly<Record<string, unknown>>[] = [];
  for (const message of all) {
    const written = harMessage(message);
    if (message.opcode < FIRST_CONTROL_OPCODE) messages.push(written);
    else controlFrames.push({ before: messages.length, ...written });
  }
  return { messages, controlFrames };
}

/** Chrome's format: seconds, and base64 except for text messages. */
function harMessage(message: HarWebSocketMessage): Readonly<Record<string, unknown>> {
  const { text, isBase64 } =
    message.opcode === 1 ? bodyText(message.data, "") : { text: toBase64(message.data), isBase64: false };
  return {
    type: message.from === "client" ? "send" : "receive",
    time: message.atMs / 1000,
    opcode: message.opcode,
    data: text,
    ...(isBase64 && { _encoding: "base64" }),
  };
}

/** In order. */
function fieldValues(fields: readonly string[], lowerName: string): readonly string[] {
  return headerPairs(fields)
    .filter(({ name }) => name.toLowerCase() === lowerName)
    .map(({ value }) => value);
}

function headerPairs(fields: readonly string[]): readonly HarPair[] {
  const pairs: HarPair[] = [];
  for (let index = 0; index < fields.length; index += 2) {
    pairs.push({ name: fields[index] ?? "", value: fields[index + 1] ?? "" });
  }
  return pairs;
}

/** Size of a field section in HTTP/1.1, including the empty line. */
function fieldSectionBytes(fields: readonly string[]): number {
  return headerPairs(fields).reduce((sum, { name, value }) => sum + name.length + value.length + 4, 2);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return text;
  }
}

/** Decoded parameters of a query or an urlencoded form; undecodable ones stay as written. */
function formPairs(text: string): readonly HarPair[] {
  return text
    .split("&")
    .filter((pair) => pair !== "")
    .map((pair) => {
      const equals = pair.indexOf("=");
      if (equals === -1) return { name: decoded(pair), value: "" };
      return { name: decoded(pair.slice(0, equals)), value: decoded(pair.slice(equals + 1)) };
    });
}

function queryPairs(url: string): readonly HarPair[] {
  const [withoutFragment = ""] = url.split("#", 1);
  const question = withoutFragment.indexOf("?");
  return question === -1 ? [] : formPairs(withoutFragment.slice(question + 1));
}

function cookiePair(text: string): HarPair | undefined {
  const equals = text.indexOf("=");
  if (text.trim() === "" || equals === -1) return undefined;
  return { name: text.slice(0, equals).trim(), value: text.slice(equals + 1).trim() };
}

/** RFC 6265 section 4.2. */
function requestCookies(fields: readonly string[]): readonly HarCookie[] {
  return fieldValues(fields, "cookie")
    .flatMap((value) => value.split(";"))
    .map(cookiePair)
    .filter((cookie) => cookie !== undefined);
}

/** RFC 6265 section 4.1. Max-Age counts from `startedMs`. */
function responseCookies(fields: readonly string[], startedMs: number): readonly HarCookie[] {
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

/** Max-Age takes precedence over Expires (RFC 6265 section 5.3). */
function expiry(maxAge: string | undefined, expires: string | undefined, startedMs: number): string | undefined {
  const age = maxAge !== undefined && /^-?\d+$/.test(maxAge) ? startedMs + Number(maxAge) * 1000 : undefined;
  const time = age ?? (expires === undefined ? Number.NaN : Date.parse(expires));
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString();
}
