import { LargeText } from "./large-text.ts";
import { knownMs, MULTIPART_FORM } from "./entry-parts.ts";
import type {
  HarContent,
  HarCookie,
  HarEntry,
  HarPair,
  HarParam,
  HarPostData,
  HarRequest,
  HarResponse,
  HarText,
  HarTimings,
} from "./har.ts";

/** A valid entry with messages about lost header fields, or the reason why it is invalid. */
export type EntryReading =
  | { readonly ok: true; readonly entry: HarEntry; readonly leftOut: readonly string[] }
  | { readonly ok: false; readonly message: string };

type Members = Readonly<Record<string, unknown>>;

const PHASES = ["blocked", "dns", "connect", "send", "wait", "receive", "ssl"] as const;

/**
 * Normalizes an entry of another program to a complete HAR 1.2 entry: HAR 1.1, missing lists and sizes, numbers as
 * text. Required are only an object with a request that has a method and a URL, a start time in the years 0 to 9999,
 * and a valid status if there is any. Invalid sizes and durations count as unknown. Unknown members are dropped except
 * extensions.
 */
export function readHarEntry(value: unknown): EntryReading {
  const entry = members(value);
  if (entry === undefined) return refuse("is not an object");
  const request = members(entry["request"]);
  if (request === undefined) return refuse("has no request");
  const method = text(request["method"]);
  if (method === undefined || !/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$/.test(method)) {
    return refuse("has no request method");
  }
  const url = text(request["url"]);
  if (url === undefined || url === "") return refuse("has no request URL");
  const started = text(entry["startedDateTime"]) ?? "";
  const year = new Date(started).getUTCFullYear();
  if (!(year >= 0 && year <= 9999)) return refuse("has no readable startedDateTime");
  const response = members(entry["response"]) ?? {};
  const status = number(response["status"]) ?? 0;
  if (!Number.isInteger(status) || status > 999) return refuse("has a response status that is none");
  const timings = readTimings(members(entry["timings"]), number(entry["time"]));
  const serverIPAddress = text(entry["serverIPAddress"]);
  const connection = text(entry["connection"]);
  const comment = text(entry["comment"]);
  const leftOut: string[] = [];
  return {
    ok: true,
    leftOut,
    entry: {
      ...extensions(entry),
      startedDateTime: started,
      time: number(entry["time"]) ?? 0,
      request: readRequest(request, method, url, leftOut),
      response: readResponse(response, status, leftOut),
      cache: members(entry["cache"]) ?? {},
      timings,
      ...(serverIPAddress && { serverIPAddress }),
      ...(connection && { connection }),
      ...(comment !== undefined && { comment }),
    },
  };
}

function refuse(message: string): EntryReading {
  return { ok: false, message };
}

function members(value: unknown): Members | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : undefined;
}

/** Accepts numbers: some programs write ports and connection ids so. */
function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : typeof value === "number" ? String(value) : undefined;
}

/** Large texts count as absent except in bodies. */
function bodyText(value: unknown): HarText | undefined {
  return value instanceof LargeText ? value : text(value);
}

function number(value: unknown): number | undefined {
  const found = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
  return typeof found === "number" && Number.isFinite(found) ? found : undefined;
}

/** Bytes; -1 if unknown. */
function size(value: unknown): number {
  const found = number(value);
  return found !== undefined && Number.isSafeInteger(found) && found >= 0 ? found : -1;
}

function extensions(value: Members): Readonly<Record<`_${string}`, unknown>> {
  const kept: Record<`_${string}`, unknown> = {};
  for (const [name, member] of Object.entries(value)) {
    // Assigning `__proto__` would change the prototype.
    if (isExtension(name) && !name.startsWith("__")) kept[name] = member;
  }
  return kept;
}

function isExtension(name: string): name is `_${string}` {
  return name.startsWith("_");
}

function readRequest(request: Members, method: string, url: string, leftOut: string[]): HarRequest {
  const postData = members(request["postData"]);
  const headers = fields(request["headers"], "request.headers", leftOut);
  return {
    ...extensions(request),
    method,
    url,
    httpVersion: text(request["httpVersion"]) ?? "",
    cookies: cookies(request["cookies"]),
    headers,
    queryString: pairs(request["queryString"]),
    ...(postData && { postData: readPostData(postData, headers, leftOut) }),
    headersSize: size(request["headersSize"]),
    bodySize: size(request["bodySize"]),
  };
}

function readPostData(postData: Members, headers: readonly HarPair[], leftOut: string[]): HarPostData {
  const written = bodyText(postData["text"]);
  const isWritten = written !== undefined && written !== "";
  const params = readParams(postData["params"]);
  // A complete body includes all parameters.
  if (!isWritten) nameUnnamed(postData["params"], readParams, "request.postData.params", leftOut);
  const mimeType = text(postData["mimeType"]) ?? "";
  const isBase64 = namesBase64(postData["encoding"]) || namesBase64(postData["_encoding"]);
  const sent = headers.find(({ name }) => name.toLowerCase() === "content-type")?.value ?? "";
  const isForm = URL_ENCODED.test(mimeType === "" ? sent : mimeType);
  if (!isWritten && !isForm && params.length > 0 && ![mimeType, sent].some((type) => MULTIPART_FORM.test(type))) {
    const type = (mimeType === "" ? sent : mimeType).slice(0, 100) || "a type that is not named";
    leftOut.push(`\`request.postData.params\` is left out: no body of ${type} can be made of parameters`);
  }
  const rebuilt = isForm
    ? new URLSearchParams(params.map(({ name, value }): [string, string] => [name, value ?? ""])).toString()
    : "";
  return {
    ...extensions(postData),
    mimeType,
    text: isWritten ? written : rebuilt,
    ...(params.length > 0 && { params }),
    ...(isBase64 && written !== undefined && { _encoding: "base64" as const }),
  };
}

const URL_ENCODED = /^\s*application\/x-www-form-urlencoded\b/i;

function readParams(value: unknown): readonly HarParam[] {
  return list(value).flatMap((param): HarParam[] => {
    const name = text(param["name"]);
    const value = text(param["value"]);
    const fileName = text(param["fileName"]);
    const contentType = text(param["contentType"]);
    if (name === undefined) return [];
    return [
      {
        name,
        ...(value !== undefined && { value }),
        ...(fileName !== undefined && { fileName }),
        ...(contentType !== undefined && { contentType }),
      },
    ];
  });
}

function readResponse(response: Members, status: number, leftOut: string[]): HarResponse {
  return {
    ...extensions(response),
    status: Math.max(0, status),
    statusText: text(response["statusText"]) ?? "",
    httpVersion: text(response["httpVersion"]) ?? "",
    cookies: cookies(response["cookies"]),
    headers: fields(response["headers"], "response.headers", leftOut),
    content: readContent(members(response["content"]) ?? {}),
    redirectURL: text(response["redirectURL"]) ?? "",
    headersSize: size(response["headersSize"]),
    bodySize: size(response["bodySize"]),
  };
}

function readContent(content: Members): HarContent {
  const written = bodyText(content["text"]);
  const compression = number(content["compression"]);
  const comment = text(content["comment"]);
  return {
    ...extensions(content),
    size: Math.max(0, size(content["size"])),
    ...(compression !== undefined && { compression }),
    mimeType: text(content["mimeType"]) ?? "",
    ...(written !== undefined && { text: written }),
    ...(namesBase64(content["encoding"]) && { encoding: "base64" as const }),
    ...(comment !== undefined && { comment }),
  };
}

function namesBase64(encoding: unknown): boolean {
  return typeof encoding === "string" && encoding.trim().toLowerCase() === "base64";
}

function readTimings(timings: Members | undefined, total: number | undefined): HarTimings {
  const optional = (name: string): number => knownMs(number(timings?.[name])) ?? -1;
  const phase = (name: string): number => Math.max(0, optional(name));
  const whole = knownMs(total) ?? 0;
  if (timings === undefined) return { send: 0, wait: whole, receive: 0 };
  // Programs that measure only the total write 0 or -1 for every phase.
  const isMeasured = PHASES.some((name) => optional(name) > 0);
  return {
    ...extensions(timings),
    blocked: optional("blocked"),
    dns: optional("dns"),
    connect: optional("connect"),
    send: phase("send"),
    wait: isMeasured ? phase("wait") : whole,
    receive: phase("receive"),
    ssl: optional("ssl"),
  };
}

function list(value: unknown): readonly Members[] {
  return Array.isArray(value) ? value.map(members).filter((item) => item !== undefined) : [];
}

function pairs(value: unknown): readonly HarPair[] {
  return list(value).flatMap((pair): HarPair[] => {
    const name = text(pair["name"]);
    return name === undefined ? [] : [{ name, value: text(pair["value"]) ?? "" }];
  });
}

const MAX_NAMED_PATHS = 5;

/** Unreadable header fields are reported, since they are essential to a message. */
function fields(value: unknown, path: string, leftOut: string[]): readonly HarPair[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) leftOut.push(`\`${path}\` is left out: it is no list`);
  nameUnnamed(value, pairs, path, leftOut);
  return pairs(value);
}

function nameUnnamed(
  value: unknown,
  read: (list: readonly unknown[]) => readonly unknown[],
  path: string,
  leftOut: string[],
): void {
  if (!Array.isArray(value) || read(value).length === value.length) return;
  const paths = value.flatMap((item, index) => (read([item]).length === 0 ? [`\`${path}[${index}]\``] : []));
  const more = paths.length > MAX_NAMED_PATHS ? ` and ${paths.length - MAX_NAMED_PATHS} more` : "";
  leftOut.push(`left out for want of a name: ${paths.slice(0, MAX_NAMED_PATHS).join(", ")}${more}`);
}

function cookies(value: unknown): readonly HarCookie[] {
  return list(value).flatMap((cookie): HarCookie[] => {
    const name = text(cookie["name"]);
    if (name === undefined) return [];
    const [path, domain, expires, sameSite] = ["path", "domain", "expires", "sameSite"].map((key) => text(cookie[key]));
    const { httpOnly, secure } = { httpOnly: cookie["httpOnly"], secure: cookie["secure"] };
    return [
      {
        name,
        value: text(cookie["value"]) ?? "",
        ...(path !== undefined && { path }),
        ...(domain !== undefined && { domain }),
        ...(expires !== undefined && { expires }),
        ...(typeof httpOnly === "boolean" && { httpOnly }),
        ...(typeof secure === "boolean" && { secure }),
        ...(sameSite !== undefined && { sameSite }),
      },
    ];
  });
}
