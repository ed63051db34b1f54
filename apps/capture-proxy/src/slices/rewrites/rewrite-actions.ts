// Tested by rewrites.interceptor.test.ts
import type { RewriteAction } from "@headworks/capture-contract";
import { reasonPhrase } from "@headworks/http-fields";
import { fieldValue } from "@headworks/http1";
import { jsonPatch, mergePatch, PatchError, readJson, writeJson, type Json } from "@headworks/json-patch";
import { compilePattern, readReplacement, type Replaced } from "@headworks/linear-pattern";
import { exchangeUrl } from "#exchange/exchange.ts";
import type { RequestMessage } from "#exchange/exchange.ts";
import { valueProblem, wireValue, withField, withoutField, withRewrittenField } from "./header-edit.ts";
import type { MappedFiles } from "./mapped-files.ts";
import { mapToFile } from "./map-to-file.ts";
import type { MessageEdit } from "./message-edit.ts";
import { withoutQueryParameter, withQueryParameter } from "./query-edit.ts";
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
export function compileAction(action: RewriteAction, files: MappedFiles): CompiledAction {
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
      return onBoth(bodyAction(action));
  }
}

const onRequests = (apply: Apply): CompiledAction => ({ request: apply, response: undefined });
const onBoth = (apply: Apply): CompiledAction => ({ request: apply, response: apply });

/** A value for the trace, which is no place for all of it. */
export function shown(value: string): string {
  return value.length <= 200 ? value : `${value.slice(0, 200)}…`;
}

/** A pattern and what takes the place of its matches, ready to run over any number of texts. */
interface TextEdit {
  readonly run: (text: string) => Replaced | "gave-up";
}

/** Longer words are left to the automaton: searching them plainly can take the product of both lengths. */
const LONGEST_WORD = 32;

function compiledText(action: { pattern: string; replacement: string; flags?: string }): TextEdit {
  const { source, flags } = readFlags(action.pattern, action.flags ?? "");
  const pattern = compilePattern(source, flags);
  const read = readReplacement(action.replacement, pattern);
  if (!read.ok) throw new RangeError(`replacement: ${read.error.message}`);
  const { replacement } = read;
  const isWord = flags === "" && source.length <= LONGEST_WORD && /^[^\\^$.*+?()[\]{}|]+$/.test(source);
  if (!isWord) return { run: (text) => pattern.replaceAll(text, replacement) };
  const word = replacement({ start: 0, end: source.length, groups: [source], named: {} });
  return { run: (text) => withWordReplaced(text, source, word) };
}

/** The platform's search for a word is many times faster than an automaton. */
function withWordReplaced(text: string, word: string, by: string): Replaced {
  const parts = text.split(word);
  return { text: parts.length === 1 ? text : parts.join(by), count: parts.length - 1 };
}

/** Flags may stand in front of the pattern too, as in `(?i)users`, which other engines know. */
export function readFlags(pattern: string, flags: string): { source: string; flags: string; skipped: number } {
  const [leading = "", own = ""] = /^\(\?([ims]{1,3})\)/.exec(pattern) ?? [];
  return {
    source: pattern.slice(leading.length),
    flags: [...new Set(flags + own)].join(""),
    skipped: leading.length,
  };
}

// Requests

function rewriteUrl(action: RewriteAction & { type: "url_rewrite" }): Apply {
  const { run } = compiledText(action);
  return (edit) => {
    const before = exchangeUrl(edit.request);
    const result = run(before);
    if (result === "gave-up") return edit.note("the pattern takes too long on this URL");
    if (result.count === 0) return edit.note("the pattern is not in the URL");
    const place = readPlace(result.text);
    if (typeof place === "string") return edit.note(`URL not changed: ${shown(result.text)} ${place}`);
    move(edit, place, before);
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
  const isSilent = !hasLength(request);
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
      const value = wireValue(action.value.trim());
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
      const { run } = compiledText(action);
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

function bodyAction(
  action: RewriteAction & { type: "body_rewrite" | "set_body" | "json_patch" | "json_merge" },
): Apply {
  switch (action.type) {
    case "body_rewrite": {
      const { run } = compiledText(action);
      return onText((text) => {
        const result = run(text);
        if (result === "gave-up") return { problem: "the pattern takes too long on this body" };
        if (result.count === 0) return { problem: "the pattern is not in the body" };
        return {
          text: result.text,
          words: result.count === 1 ? "1 match replaced" : `${result.count} matches replaced`,
        };
      });
    }
    case "json_patch":
      return onJson("JSON Patch", (json) => jsonPatch(json, action.patch as unknown as Json));
    case "json_merge":
      return onJson("JSON Merge Patch", (json) => mergePatch(json, action.patch as Json));
    case "set_body":
      return setBody(action);
  }
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

type Edited = { readonly text: string; readonly words: string } | { readonly problem: string };

function onText(change: (text: string) => Edited): Apply {
  const applyNow = (edit: MessageEdit): void => {
    const { body } = edit;
    if (body.obstacle !== undefined) return leaveBody(edit, body.obstacle);
    const { text } = body;
    if (text === undefined) return edit.note("the body is no text");
    const beforeBytes = body.bytes?.length ?? 0;
    const edited = change(text);
    if ("problem" in edited) return edit.note(edited.problem);
    if (edited.text === text) return edit.note(`${edited.words}, which changes nothing`);
    body.replaceText(edited.text);
    edit.changedBody(`${edited.words}: body ${beforeBytes} to ${body.bytes?.length ?? 0} bytes`);
  };
  return (edit) => {
    if (edit.body.isLoaded) return applyNow(edit);
    return edit.body.load().then(() => applyNow(edit));
  };
}

function onJson(words: string, change: (json: Json) => Json): Apply {
  return onText((text) => {
    if (text.trim() === "") return { problem: `${words} not applied: there is no body` };
    try {
      return { text: writeJson(change(readJson(text)), text), words: `${words} applied` };
    } catch (error) {
      if (error instanceof PatchError) return { problem: `${words} not applied: ${error.message}` };
      if (error instanceof SyntaxError) return { problem: `${words} not applied: the body is no JSON` };
      if (error instanceof RangeError) return { problem: `${words} not applied: the result is too deep or too large` };
      throw error;
    }
  });
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
