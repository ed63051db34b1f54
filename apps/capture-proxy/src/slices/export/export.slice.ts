import type { TrafficEntry, TrafficFilter, exportOperations } from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import { ApiError, notFound, validationError } from "#api/api-error.ts";
import type { Slice, SliceHost } from "#slice.ts";
import { type CurlOption, curlOptions, curlText } from "./curl-text.ts";
import { fetchText } from "./fetch-text.ts";
import { httpieText } from "./httpie-text.ts";
import { pythonText } from "./python-text.ts";
import { type Field, sendsBody, shownText, type SnippetRequest, wireBytes } from "./snippet-request.ts";
import { wgetText } from "./wget-text.ts";

/** Exports captured traffic as HAR documents, command lines and code. */
export function createExportSlice(host: SliceHost): Slice<typeof exportOperations> {
  return { name: "export", operations: createExportOperations(host) };
}

/** Base64 characters per echo line; cmd.exe accepts lines of 8191 characters. */
const CMD_LINE = 4000;
const MAX_CONFIG_BODY_BYTES = 32_768;
const ESCAPES: Readonly<Record<string, string>> = { "\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t" };

const WRITERS = {
  curl: curlText,
  "curl-powershell": curlPowershellText,
  "curl-cmd": curlCmdText,
  fetch: fetchText,
  python: pythonText,
  httpie: httpieText,
  wget: wgetText,
} as const;

function createExportOperations({ store }: Pick<SliceHost, "store">): Handlers<typeof exportOperations> {
  const requestOf = async (id: string): Promise<SnippetRequest> => {
    const entry = (await store.getEntry(id, { includeBodies: false, decompressed: false })) ?? notFound("entry", id);
    // Tunnels are refused first: that reason says more than a missing body.
    const bare = reproducibleRequest(entry, NOTHING);
    if (isHandshake(entry)) return bare;
    checkBody(entry);
    if (entry.request.body_state === "none") return bare;
    const range = { decoded: false, utf8: false, start: 0, end: MAX_BODY_BYTES };
    const part = (await store.readBody(id, "request", range)) ?? notFound("entry", id);
    if (part.bytes.length !== entry.request.body_stored_size) {
      throw new ApiError("CONFLICT", "The request's body is no longer stored");
    }
    return reproducibleRequest(entry, part.bytes);
  };
  return {
    exportHar: async ({ query, signal }) => {
      const { ids, ...filter } = query;
      if (ids !== undefined && Object.keys(filter).length > 0) {
        throw validationError([{ path: "query/ids", message: "cannot be combined with a filter" }]);
      }
      const { total, chunks } = await store.exportHar(filter satisfies TrafficFilter, idList(ids), signal);
      return { status: 200, headers: { "x-total-count": String(total) }, body: chunks };
    },
    exportCurl: async ({ params }) => ({ status: 200, body: { curl: curlText(await requestOf(params.id)) } }),
    exportSnippet: async ({ params, query }) => {
      const format = query.format ?? "curl";
      return { status: 200, body: { format, text: WRITERS[format](await requestOf(params.id)) } };
    },
  };
}

const NOTHING = new Uint8Array(0);

function idList(ids: string | undefined): string[] | undefined {
  return ids?.split(",").flatMap((id) => (id.trim() === "" ? [] : [id.trim()]));
}

/** A curl configuration file; `bodyFile` names a separate file if the body cannot be part of it. */
interface CurlConfig {
  readonly text: string;
  readonly bodyFile: boolean;
}

/**
 * Commands for any PowerShell version. Versions disagree about quotation marks in arguments, so curl reads its options
 * from a literal here-string; bytes that a here-string cannot hold go through files.
 */
export function curlPowershellText(request: SnippetRequest): string {
  const config = curlConfig(request);
  const lines = config.bodyFile
    ? [
        "$body = New-TemporaryFile",
        `[IO.File]::WriteAllBytes($body, [Convert]::FromBase64String('${Buffer.from(request.body).toString("base64")}'))`,
      ]
    : [];
  const extra = config.bodyFile ? ' --data-binary "@$body"' : "";
  if (isPrintable(config.text)) lines.push(`@'\n${config.text}'@ | curl.exe --config -${extra}`);
  else {
    lines.push(
      "$request = New-TemporaryFile",
      `[IO.File]::WriteAllBytes($request, [Convert]::FromBase64String('${toBase64(config.text)}'))`,
      `curl.exe --config "$request"${extra}`,
    );
  }
  return `${lines.join("\n")}\n`;
}

/**
 * Commands for cmd.exe, typed or in a batch file. Arguments are written out only if they contain nothing that cmd or
 * the C library interprets inside quotation marks; otherwise curl's options come from a file written in base64.
 */
export function curlCmdText(request: SnippetRequest): string {
  const { url, options } = curlOptions(request);
  const body = sendsBody(request) ? shownText(request.body, { lineEnds: false }) : undefined;
  const isShort = body === undefined ? !sendsBody(request) : body.length < CMD_LINE;
  const all: CurlOption[] = [...options, ...(body === undefined ? [] : [["data-raw", body] as const]), ["url", url]];
  const line = ["curl", ...all.map(([name, value]) => (value === undefined ? `--${name}` : `--${name} "${value}"`))];
  if (isShort && line.join(" ").length < CMD_LINE && all.every(([, value]) => isInertInCmd(value))) {
    return `${line.join(" ")}\n`;
  }
  const config = curlConfig(request);
  const files = ["%TEMP%\\weir-request", "%TEMP%\\weir-body"];
  const [requestFile = "", bodyFile = ""] = files;
  const lines = cmdFile(toBase64(config.text), requestFile);
  if (config.bodyFile) lines.push(...cmdFile(Buffer.from(request.body).toString("base64"), bodyFile));
  lines.push(`curl --config "${requestFile}"${config.bodyFile ? ` --data-binary "@${bodyFile}"` : ""}`);
  return `${lines.join("\n")}\n`;
}

function curlConfig(request: SnippetRequest): CurlConfig {
  const { url, options } = curlOptions(request);
  const text = shownText(request.body, { lineEnds: true });
  const isInline = sendsBody(request) && text !== undefined && request.body.length <= MAX_CONFIG_BODY_BYTES;
  const body: CurlOption[] = isInline ? [["data-raw", Buffer.from(request.body).toString("latin1")]] : [];
  const lines = [["url", url] as const, ...options, ...body].map(([name, value]) =>
    value === undefined ? name : `${name} = "${escaped(value)}"`,
  );
  return { text: `${lines.join("\n")}\n`, bodyFile: sendsBody(request) && !isInline };
}

/** Escapes for curl's configuration files. */
function escaped(value: string): string {
  return value.replaceAll(/[\\"\n\t]/gu, (found) => ESCAPES[found] ?? found);
}

function isPrintable(text: string): boolean {
  return /^[\n\x20-\x7e]*$/u.test(text);
}

/** True without `%`, `!`, `^`, quotation marks, backslashes and non-ASCII characters. */
function isInertInCmd(value: string | undefined): boolean {
  return value === undefined || /^[A-Za-z0-9 _.:/,;=?&*+@#~()[\]{}<>|'$`-]*$/u.test(value);
}

function cmdFile(base64: string, path: string): string[] {
  const lines: string[] = [];
  for (let at = 0; at < base64.length; at += CMD_LINE) {
    lines.push(`>${at === 0 ? "" : ">"}"${path}.b64" echo ${base64.slice(at, at + CMD_LINE)}`);
  }
  if (lines.length === 0) return [`>"${path}" type nul`];
  return [...lines, `certutil -f -decode "${path}.b64" "${path}" >nul`];
}

function toBase64(wire: string): string {
  return Buffer.from(wireBytes(wire)).toString("base64");
}

/** Larger bodies do not fit a command line or a clipboard. */
export const MAX_BODY_BYTES = 8_388_608;
const SCHEMES: Readonly<Record<string, "http" | "https">> = { http: "http", https: "https", ws: "http", wss: "https" };

/**
 * The request of an entry, ready to be written out. Throws 409 if it cannot be reproduced: tunnels have no request of
 * their own, and a command must not send another body than the original.
 */
function reproducibleRequest(entry: TrafficEntry, body: Uint8Array): SnippetRequest {
  const { request } = entry;
  const url = /^([a-z]+):\/\/([^/?#]+)/u.exec(request.url);
  const scheme = SCHEMES[url?.[1] ?? ""];
  if (entry.is_passthrough || request.method === "CONNECT" || scheme === undefined) {
    throw new ApiError("CONFLICT", "This is a tunnel: what went through it was counted, not read");
  }
  const authority = url?.[2] ?? "";
  const version = versionOf(request.http_version);
  return {
    method: request.method,
    scheme,
    authority,
    target: request.path,
    version,
    fields: framedFields(request.headers_list.filter(isSendable), { authority, version, bodyBytes: body.length }),
    body,
  };
}

/** Fields that are forbidden in HTTP/2 (RFC 9113 section 8.2.2). */
const OF_HTTP1_CONNECTIONS = new Set(["connection", "keep-alive", "transfer-encoding", "upgrade", "http2-settings"]);

/** Adds the fields that HTTP/1.1 requires but HTTP/2 and imported messages may lack: Host and the body's length. */
function framedFields(
  fields: readonly Field[],
  request: { readonly authority: string; readonly version: SnippetRequest["version"]; readonly bodyBytes: number },
): Field[] {
  const { authority, version, bodyBytes } = request;
  const framed =
    version === "HTTP/2" ? fields.filter(([name]) => !OF_HTTP1_CONNECTIONS.has(name.toLowerCase())) : [...fields];
  const has = (lowerName: string): boolean => framed.some(([name]) => name.toLowerCase() === lowerName);
  if (version !== "HTTP/1.0" && !has("host")) framed.unshift(["Host", authority]);
  if (bodyBytes > 0 && !has("content-length") && !has("transfer-encoding")) {
    framed.push(["Content-Length", String(bodyBytes)]);
  }
  return framed;
}

/** True for WebSocket handshakes; the bytes counted as their body are messages (RFC 6455 section 4.1). */
function isHandshake({ request }: Pick<TrafficEntry, "request">): boolean {
  return /^wss?:/u.test(request.url);
}

/** Throws 409 if the body of an entry's request is missing or incomplete. */
function checkBody({ request, state }: Pick<TrafficEntry, "request" | "state">): void {
  const { body_state: bodyState, body_size: size, body_stored_size: stored } = request;
  if (bodyState === "truncated") {
    throw new ApiError("CONFLICT", `Only the first ${stored} of ${size} bytes of the request's body were stored`);
  }
  if (bodyState === "not_stored") {
    const reason = state === "pending" ? "The request is still running" : "The request's body was not stored";
    throw new ApiError("CONFLICT", `${reason}: it cannot be reproduced`);
  }
  if (stored > MAX_BODY_BYTES) {
    throw new ApiError(
      "CONFLICT",
      `The request's body has ${stored} bytes, too many for a command: fetch it by itself and send it from a file`,
    );
  }
}

function versionOf(version: string | null): SnippetRequest["version"] {
  return version === "HTTP/1.0" || version === "HTTP/2" ? version : "HTTP/1.1";
}

/** Imported entries may hold invalid fields; fields for the proxy alone are not part of the request. */
function isSendable([name, value]: Field): boolean {
  if (/^proxy-connection$/iu.test(name)) return false;
  return /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/u.test(name) && /^[\t\x20-\x7e\x80-\xff]*$/u.test(value);
}
