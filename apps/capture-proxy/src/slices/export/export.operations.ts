import type { TrafficFilter, exportOperations } from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import { ApiError, notFound, validationError } from "#api/api-error.ts";
import type { SliceHost } from "#slice.ts";
import { type CurlOption, curlOptions } from "./curl-options.ts";
import { curlText } from "./curl-text.ts";
import { checkBody, isHandshake, MAX_BODY_BYTES, reproducibleRequest } from "./export.check.ts";
import { fetchText } from "./fetch-text.ts";
import { httpieText } from "./httpie-text.ts";
import { pythonText } from "./python-text.ts";
import { sendsBody, shownText, type SnippetRequest, wireBytes } from "./snippet-request.ts";
import { wgetText } from "./wget-text.ts";

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

export function createExportOperations({ store }: Pick<SliceHost, "store">): Handlers<typeof exportOperations> {
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
