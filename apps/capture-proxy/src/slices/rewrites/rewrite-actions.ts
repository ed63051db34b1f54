import type { RewriteAction } from "@headworks/capture-contract";
import { reasonPhrase, wireText } from "@headworks/http-fields";
import { fieldValue } from "@headworks/http1";
import { exchangeUrl } from "#exchange/exchange.ts";
import type { RequestMessage } from "#exchange/exchange.ts";
import { allowCors } from "./allow-cors.ts";
import { valueProblem, withField, withoutField, withRewrittenField } from "./header-edit.ts";
import type { MappedFiles } from "./mapped-files.ts";
import { mapToFile } from "./map-to-file.ts";
import type { MessageEdit } from "./message-edit.ts";
import { withoutQueryParameter, withQueryParameter } from "./query-edit.ts";
import { compilePatternEdit, compileTextEdit, editWord, wordEditOf } from "./text-edits.ts";
import type { TextAction } from "./text-edits.ts";
import { hasPlainAscii } from "./text-body.ts";
import type { TextThread } from "./text-thread.ts";
import { isElsewhere, mappedPlace, moveRequest, readPlace } from "./url-edit.ts";
import type { Place } from "./url-edit.ts";

/** Carries out one action on one message. */
export type Apply = (edit: MessageEdit) => void | Promise<unknown>;

/** An action ready to run; undefined for the message it does not concern. */
export interface CompiledAction {
  readonly request: Apply | undefined;
  readonly response: Apply | undefined;
}

/** Compiles a checked action. Throws for one that `actionProblems` has something to say about. */
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

/** A value for the trace, which is no place for all of it. */
function shown(value: string): string {
  return value.length <= 200 ? value : `${value.slice(0, 200)}…`;
}

// Requests

function rewriteUrl(action: RewriteAction & { type: "url_rewrite" }): Apply {
  const run = compilePatternEdit(action);
  return (edit) => {
    const before = exchangeUrl(edit.request);
    const result = run(before);
    if (result === "gave-up") return edit.note("the pattern takes too long on this URL");
    if (result.count === 0) return edit.note("the pattern is not in the URL");
    const place = readPlace(result.text);
    if (typeof place === "string") return edit.note(`URL not changed: ${shown(result.text)} ${place}`);
    // OPTIONS * is shown with a slash that it does not have.
    const isServer = edit.request.path === "*" && place.path === "/*";
    move(edit, isServer ? { ...place, path: "*" } : place, before);
  };
}

function mapToUrl(url: string): Apply {
  const target = readPlace(url);
  if (typeof target === "string") throw new RangeError(target);
  return (edit) => move(edit, mappedPlace(target, edit.request.path), exchangeUrl(edit.request));
}

function move(edit: MessageEdit, place: Place, before: string): void {
  if (!isElsewhere(edit.request, place)) return edit.note("the URL is that already");
  moveRequest(edit.changeRequest(), place);
  edit.changed(`URL ${shown(before)} to ${shown(exchangeUrl(edit.request))}`);
}

function setPath(edit: MessageEdit, path: string, words: string): void {
  if (edit.request.path === "*") return edit.note("OPTIONS * has no query");
  if (path === edit.request.path) return edit.note("the query is that already");
  edit.changeRequest().path = path;
  edit.changed(words);
}

/** Methods whose requests say their length even when there is no body (RFC 9110, 8.6). */
const ANNOUNCING = new Set(["POST", "PUT", "PATCH"]);

function setMethod(edit: MessageEdit, method: string): void {
  const { request } = edit;
  if (request.method === method) return edit.note(`the method is ${method} already`);
  if (opensTunnel(request)) return edit.note("the method of a request that opens a tunnel stays");
  edit.changed(`method ${request.method} to ${method}`);
  const isSilent = !hasLength(request) && !edit.exchange.requestHasBody;
  const changed = edit.changeRequest();
  changed.method = method;
  if (ANNOUNCING.has(method) && isSilent) changed.fields = withField(changed.fields, "Content-Length", "0", false);
}

const opensTunnel = ({ method, scheme }: Readonly<RequestMessage>): boolean =>
  method === "CONNECT" || scheme === "ws" || scheme === "wss" || scheme === "tcp";

const hasLength = ({ fields }: Readonly<RequestMessage>): boolean =>
  fieldValue(fields, "content-length") !== undefined || fieldValue(fields, "transfer-encoding") !== undefined;

// Answers

function setStatus(edit: MessageEdit, code: number): void | Promise<unknown> {
  const { status } = edit.response;
  if (status === code) return edit.note(`the status is ${code} already`);
  const response = edit.changeResponse();
  response.status = code;
  response.reason = reasonPhrase(code);
  edit.changed(`status ${status} to ${code}`);
  // RFC 9110, 15.3.6: unlike after 204, clients would read a body behind it.
  return code === 205 ? edit.replaceBody(Buffer.alloc(0)) : undefined;
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
        if (isSame(fields, edit.fields)) return edit.note(`header ${name} has this value already`);
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

/** The answer to HEAD states the length of a body that rules would change: nobody knows how long that is. */
function leaveBody(edit: MessageEdit, reason: string): void {
  edit.note(reason);
  if (edit.phase !== "response" || edit.request.method !== "HEAD") return;
  const { fields, count } = withoutField(edit.fields, "Content-Length");
  if (count === 0) return;
  edit.setFields(fields);
  edit.changed("removed Content-Length: the body that GET gives is changed");
}

/** Bodies up to this size are edited at once; larger ones in a thread, so that others need not wait for them. */
const AT_ONCE_BYTES = 131_072;

/** Each operation of a JSON Patch walks through what it changes. */
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
    if (text === undefined) return edit.note("the body is no text");
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
    if (edit.body.noBody !== undefined) return leaveBody(edit, edit.body.noBody);
    const hasType = typeof action.content_type === "string" && (await edit.canReplaceBody());
    if (hasType) edit.setFields(withField(edit.fields, "Content-Type", action.content_type ?? "", false));
    const isReplaced = await edit.replaceBody(bytes ?? action.content);
    if (isReplaced) edit.changed(`body replaced by ${edit.body.bytes?.length ?? 0} bytes`);
  };
}
