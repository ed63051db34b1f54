import { extname } from "node:path";
import type { RewriteAction } from "@headworks/capture-contract";
import { percentDecoded, reasonPhrase, wireText } from "@headworks/http-fields";
import { exchangeUrl } from "#exchange/exchange.ts";
import type { SyntheticResponse } from "#exchange/phases.ts";
import { allowCors } from "./allow-cors.ts";
import { leaveBody, moveTo, setMethod, setStatus, shown } from "#rules/message-actions.ts";
import { valueProblem, withField, withoutField, withRewrittenField } from "#rules/header-edit.ts";
import type { MappedFiles } from "./mapped-files.ts";
import type { Apply, MessageEdit } from "#rules/message-edit.ts";
import { hasPlainAscii } from "#rules/text-body.ts";
import { compilePatternEdit, compileTextEdit, editWord, type TextAction, wordEditOf } from "./text-edits.ts";
import type { TextThread } from "./text-thread.ts";
import { mappedTarget, parseUrlTarget, splitQuery } from "#rules/url-edit.ts";

const formDecoded = (text: string): string => percentDecoded(text.replaceAll("+", " "));

/** Like `encodeURIComponent`, which throws on lone surrogates; they become U+FFFD. */
const encodeQueryText = (text: string): string => encodeURIComponent(text.toWellFormed());

const TYPES: Readonly<Record<string, string>> = {
  ".aac": "audio/aac",
  ".avif": "image/avif",
  ".bin": "application/octet-stream",
  ".bmp": "image/bmp",
  ".css": "text/css; charset=utf-8",
  ".csv": "text/csv; charset=utf-8",
  ".eot": "application/vnd.ms-fontobject",
  ".gif": "image/gif",
  ".gz": "application/gzip",
  ".htm": "text/html; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".ico": "image/vnd.microsoft.icon",
  ".ics": "text/calendar; charset=utf-8",
  ".jpeg": "image/jpeg",
  ".jpg": "image/jpeg",
  ".js": "text/javascript; charset=utf-8",
  ".json": "application/json",
  ".jsonld": "application/ld+json",
  ".m3u8": "application/vnd.apple.mpegurl",
  ".m4a": "audio/mp4",
  ".map": "application/json",
  ".md": "text/markdown; charset=utf-8",
  ".mjs": "text/javascript; charset=utf-8",
  ".mp3": "audio/mpeg",
  ".mp4": "video/mp4",
  ".mpd": "application/dash+xml",
  ".oga": "audio/ogg",
  ".ogg": "audio/ogg",
  ".ogv": "video/ogg",
  ".otf": "font/otf",
  ".pdf": "application/pdf",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".tar": "application/x-tar",
  ".tif": "image/tiff",
  ".tiff": "image/tiff",
  ".ts": "video/mp2t",
  ".ttf": "font/ttf",
  ".txt": "text/plain; charset=utf-8",
  ".wasm": "application/wasm",
  ".wav": "audio/wav",
  ".weba": "audio/webm",
  ".webm": "video/webm",
  ".webmanifest": "application/manifest+json",
  ".webp": "image/webp",
  ".woff": "font/woff",
  ".woff2": "font/woff2",
  ".xhtml": "application/xhtml+xml",
  ".xml": "application/xml",
  ".yaml": "application/yaml",
  ".yml": "application/yaml",
  ".zip": "application/zip",
};

/** Responses of rules must not stay in browser caches when the rule is gone. */
const NO_STORE = ["Cache-Control", "no-store"];

/** Statuses without a complete body. */
const WITHOUT_WHOLE_BODY = new Set([204, 205, 206, 304]);

/** `undefined` marks phases the action does not apply to. */
export interface CompiledAction {
  readonly request: Apply | undefined;
  readonly response: Apply | undefined;
}

/** Compiles a checked action. Throws for one with {@link actionIssues}. */
export function compileAction(action: RewriteAction, files: MappedFiles, thread: TextThread): CompiledAction {
  switch (action.type) {
    case "url_rewrite":
      return { request: rewriteUrl(action), response: undefined };
    case "map_to_url":
      return { request: mapToUrl(action.url), response: undefined };
    case "query_param":
      return onRequests((edit) =>
        setPath(
          edit,
          withQueryParameter(edit.request.path, action.name, action.value, action.append),
          `query parameter ${action.name}=${shown(action.value)}`,
        ),
      );
    case "remove_query_param":
      return onRequests((edit) =>
        setPath(edit, withoutQueryParameter(edit.request.path, action.name), `removed query parameter ${action.name}`),
      );
    case "set_method":
      return onRequests((edit) => setMethod(edit, action.method));
    case "set_status":
      return { request: undefined, response: (edit) => setStatus(edit, action.code) };
    case "allow_cors":
      return allowCors(action);
    case "map_to_file":
      return { request: mapToFile(action, files), response: mapToFile(action, files) };
    case "set_header":
    case "remove_header":
    case "header_rewrite":
      return onBoth(headerAction(action));
    case "body_rewrite":
    case "set_body":
    case "json_patch":
    case "json_merge":
      return onBoth(bodyAction(action, thread));
  }
}

const onRequests = (apply: Apply): CompiledAction => ({ request: apply, response: undefined });
const onBoth = (apply: Apply): CompiledAction => ({ request: apply, response: apply });

// Requests

function rewriteUrl(action: RewriteAction & { type: "url_rewrite" }): Apply {
  const run = compilePatternEdit(action);
  return (edit) => {
    const before = exchangeUrl(edit.request);
    const result = run(before);
    if (result === "gave-up") return edit.note("the pattern takes too long on this URL");
    if (result.count === 0) return edit.note("the pattern is not in the URL");
    const target = parseUrlTarget(result.text);
    if (typeof target === "string") return edit.note(`URL not changed: ${shown(result.text)} ${target}`);
    // OPTIONS * is shown with a slash it does not have.
    const isServer = edit.request.path === "*" && target.path === "/*";
    moveTo(edit, isServer ? { ...target, path: "*" } : target, before);
  };
}

function mapToUrl(url: string): Apply {
  const target = parseUrlTarget(url);
  if (typeof target === "string") throw new RangeError(target);
  return (edit) => moveTo(edit, mappedTarget(target, edit.request.path), exchangeUrl(edit.request));
}

function setPath(edit: MessageEdit, path: string, words: string): void {
  if (edit.request.path === "*") return edit.note("OPTIONS * has no query");
  if (path === edit.request.path) return edit.note("the query is unchanged");
  edit.changeRequest().path = path;
  edit.changed(words);
}

// Both

function headerAction(action: RewriteAction & { type: "set_header" | "remove_header" | "header_rewrite" }): Apply {
  const { name } = action;
  switch (action.type) {
    case "set_header": {
      const { append = false } = action;
      const value = wireText(action.value.trim());
      const problem = valueProblem(value);
      if (problem !== undefined) throw new RangeError(problem);
      return (edit) => {
        const fields = withField(edit.fields, name, value, append);
        if (isSame(fields, edit.fields)) return edit.note(`header ${name} already has this value`);
        edit.setFields(fields);
        edit.changed(`${append ? "added" : "set"} header ${name}: ${shown(action.value.trim())}`);
      };
    }
    case "remove_header":
      return (edit) => {
        const { fields, count } = withoutField(edit.fields, name);
        if (count === 0) return edit.note(`there is no header ${name}`);
        edit.setFields(fields);
        edit.changed(`removed header ${name}${count > 1 ? ` (${count} fields)` : ""}`);
      };
    case "header_rewrite": {
      const run = compilePatternEdit(action);
      return (edit) => {
        const result = withRewrittenField(edit.fields, name, run);
        if (typeof result === "string") return edit.note(`header ${name} not changed: ${result}`);
        if (result.count === 0) return edit.note(`nothing to replace in header ${name}`);
        edit.setFields(result.fields);
        const now =
          result.fields[
            result.fields.findIndex((field, at) => at % 2 === 0 && field.toLowerCase() === name.toLowerCase()) + 1
          ];
        edit.changed(
          `header ${name} rewritten to ${shown(now ?? "")}${result.count > 1 ? ` (${result.count} fields)` : ""}`,
        );
      };
    }
  }
}

function isSame(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((text, at) => text === other[at]);
}

function bodyAction(action: TextAction | (RewriteAction & { type: "set_body" }), thread: TextThread): Apply {
  return action.type === "set_body" ? setBody(action) : editText(action, thread);
}

/** Larger bodies are edited in a thread, so that other traffic is not delayed. */
const AT_ONCE_BYTES = 131_072;

/** JSON Patches with more operations run in a thread: each operation traverses the document. */
const OPERATIONS_AT_ONCE = 8;

function editText(action: TextAction, thread: TextThread): Apply {
  const operations = action.type === "json_patch" ? action.patch.length : 1;
  const atOnceBytes = AT_ONCE_BYTES / Math.max(1, operations / OPERATIONS_AT_ONCE);
  const change = compileTextEdit(action);
  const word = wordEditOf(action);
  const applyNow = (edit: MessageEdit): void | Promise<void> => {
    const { body } = edit;
    if (body.obstacle !== undefined) return leaveBody(edit, body.obstacle);
    const { bytes } = body;
    if (word !== undefined && bytes !== undefined && hasPlainAscii(bytes, body.contentType)) {
      return take(edit, bytes, editWord(bytes, word));
    }
    if (bytes !== undefined && bytes.length > atOnceBytes) return editInThread(edit, action, bytes, thread);
    const { text } = body;
    if (text === undefined) return edit.note("the body is not text");
    const edited = change(text);
    if ("problem" in edited) return edit.note(edited.problem);
    body.replaceText(edited.text);
    edit.changedBody(`${edited.words}: body ${bytes?.length ?? 0} to ${body.bytes?.length ?? 0} bytes`);
  };
  return (edit) => (edit.body.isLoaded ? applyNow(edit) : edit.body.load().then(() => applyNow(edit)));
}

async function editInThread(edit: MessageEdit, action: TextAction, bytes: Buffer, thread: TextThread): Promise<void> {
  take(edit, bytes, await thread.edit(action, bytes, edit.body.contentType));
}

function take(
  edit: MessageEdit,
  before: Buffer,
  edited:
    | { readonly bytes: Buffer; readonly newCharset?: string | undefined; readonly words: string }
    | { readonly problem: string },
): void {
  if ("problem" in edited) return edit.note(edited.problem);
  edit.body.replaceEdited(edited.bytes, edited.newCharset);
  edit.changedBody(`${edited.words}: body ${before.length} to ${edited.bytes.length} bytes`);
}

function setBody(action: RewriteAction & { type: "set_body" }): Apply {
  const bytes = action.base64 === true ? Buffer.from(action.content, "base64") : undefined;
  return async (edit) => {
    if (edit.body.noBodyReason !== undefined) return leaveBody(edit, edit.body.noBodyReason);
    const hasType = typeof action.content_type === "string" && (await edit.canReplaceBody());
    if (hasType) edit.setFields(withField(edit.fields, "Content-Type", action.content_type ?? "", false));
    const isReplaced = await edit.replaceBody(bytes ?? action.content);
    if (isReplaced) edit.changed(`body replaced by ${edit.body.bytes?.length ?? 0} bytes`);
  };
}

type MapToFile = RewriteAction & { type: "map_to_file" };

/** Requests get the file as response without contacting the origin; responses get it as body. */
function mapToFile({ path, prefix }: MapToFile, files: MappedFiles): (edit: MessageEdit) => Promise<void> {
  const isFolder = path.endsWith("/") || typeof prefix === "string";
  const folder = isFolder && path.length > 1 ? path.replace(/\/+$/, "") : path;
  return async (edit) => {
    if (edit.isOwnResponse) return edit.note("the response already comes from the file");
    if (edit.request.scheme === "ws" || edit.request.scheme === "wss") {
      return edit.note("a WebSocket handshake is not answered from a file");
    }
    const rest = isFolder ? restBehind(splitQuery(edit.request.path)[0], prefix ?? "/") : undefined;
    if (isFolder && rest === undefined) return edit.note(`the path does not begin with ${prefix ?? "/"}`);
    const search = await files.read(folder, rest);
    if (search.kind !== "found") {
      edit.changed(`answered with 404: ${search.reason}`);
      edit.ownResponse = missing(search.reason);
      return;
    }
    const type = fileType(search.path);
    edit.changed(`answered from ${search.path} (${search.bytes.length} bytes, ${type})`);
    if (edit.phase === "request") edit.ownResponse = found(search.bytes, type);
    else await replaceResponse(edit, search.bytes, type);
  };
}

/** The rest of a path after a prefix that ends at a segment boundary. */
function restBehind(path: string, prefix: string): string | undefined {
  const base = prefix.replace(/\/+$/, "");
  return path === base || path.startsWith(`${base}/`) ? path.slice(base.length) : undefined;
}

function found(bytes: Buffer, type: string): SyntheticResponse {
  return {
    status: 200,
    fields: ["Content-Type", type, "Content-Length", String(bytes.length), ...NO_STORE],
    body: bytes,
  };
}

function missing(reason: string): SyntheticResponse {
  const body = Buffer.from(`Weir: a rewrite rule maps this URL to a file, but ${reason}.\n`);
  const fields = ["Content-Type", "text/plain; charset=utf-8", "Content-Length", String(body.length), ...NO_STORE];
  return { status: 404, fields, body };
}

async function replaceResponse(edit: MessageEdit, bytes: Buffer, type: string): Promise<void> {
  const { status } = edit.response;
  if (WITHOUT_WHOLE_BODY.has(status)) {
    const response = edit.changeResponse();
    response.status = 200;
    response.reason = reasonPhrase(200);
    edit.changed(`status ${status} to 200`);
  }
  const whole = withoutField(withField(edit.fields, "Content-Type", type, false), "Content-Range").fields;
  edit.setFields(whole);
  await edit.replaceBody(bytes);
}

export function fileType(path: string): string {
  const extension = extname(path).toLowerCase();
  return (Object.hasOwn(TYPES, extension) ? TYPES[extension] : undefined) ?? "application/octet-stream";
}

/**
 * Sets a query parameter: the first occurrence is replaced and further ones removed; without one, or with `append`, it
 * is added at the end. All other bytes of path and query stay unchanged.
 */
export function withQueryParameter(path: string, name: string, value: string, append = false): string {
  const [bare, query] = splitQuery(path);
  const piece = `${encodeQueryText(name)}=${encodeQueryText(value)}`;
  const pieces = query === undefined || query === "" ? [] : query.split("&");
  const first = append ? -1 : pieces.findIndex((own) => isNamed(own, name));
  if (first === -1) return joined(bare, query === "" ? undefined : query, piece);
  const kept = pieces.flatMap((own, at) => {
    if (!isNamed(own, name)) return [own];
    if (at !== first) return [];
    return [valueOf(own) === value ? own : piece];
  });
  return `${bare}?${kept.join("&")}`;
}

/** Removes all occurrences of a parameter, and with the last one the question mark. */
export function withoutQueryParameter(path: string, name: string): string {
  const [bare, query] = splitQuery(path);
  if (query === undefined) return path;
  const pieces = query.split("&");
  const kept = pieces.filter((own) => !isNamed(own, name));
  if (kept.length === pieces.length) return path;
  return kept.length === 0 ? bare : `${bare}?${kept.join("&")}`;
}

function joined(bare: string, query: string | undefined, piece: string): string {
  if (query === undefined) return `${bare}?${piece}`;
  return query.endsWith("&") ? `${bare}?${query}${piece}` : `${bare}?${query}&${piece}`;
}

function isNamed(piece: string, name: string): boolean {
  if (piece === "") return false;
  const equals = piece.indexOf("=");
  return formDecoded(equals === -1 ? piece : piece.slice(0, equals)) === name;
}

function valueOf(piece: string): string | undefined {
  const equals = piece.indexOf("=");
  return equals === -1 ? undefined : formDecoded(piece.slice(equals + 1));
}
