import assert from "node:assert/strict";
import { test } from "node:test";
import { CompletionContext } from "@codemirror/autocomplete";
import { javascriptLanguage } from "@codemirror/lang-javascript";
import { EditorState } from "@codemirror/state";
import { readScriptApi, scriptCompletion } from "./script-completion.ts";

const api = readScriptApi(`
/** A request. */
interface WeirRequest {
  /** The method. */
  method: string;
  headers: Record<string, string>;
  readonly url: ParsedUrl;
}
interface WeirResponse extends Message { statusCode: number }
interface Message { body: string | null }
interface ParsedUrl { host: string; build(path: string): Readonly<ParsedUrl> }
type HookResult = { continue?: boolean; modified?: boolean; response?: WeirResponse } | void;
interface Context { data: Record<string, unknown>; readonly session: { id: string } }
/**
 * Writes lines
 * to the history.
 */
declare const console: { log(...values: unknown[]): void; error: (text: string) => void };
declare namespace base64 { function encode(text: string): string; function decode(text: string): string }
declare const url: { parse(text: string): ParsedUrl };
/** Before the request is sent. */
declare function onRequest(request: WeirRequest, context: Context): HookResult | Promise<HookResult>;
declare function onResponse(request: WeirRequest, response: WeirResponse, context: Context): HookResult;
`);
const complete = scriptCompletion(api);

/** The labels offered at the bar in a script. */
async function offered(script: string, explicit = false): Promise<readonly string[]> {
  const at = script.indexOf("|");
  const state = EditorState.create({ doc: script.replace("|", ""), extensions: [javascriptLanguage] });
  const result = await complete(new CompletionContext(state, at, explicit));
  const typed = result === null ? "" : state.sliceDoc(result.from, at);
  return (result?.options ?? []).map(({ label }) => label).filter((label) => label.startsWith(typed));
}

for (const [what, script, expected] of [
  ["members of a parameter", "function onRequest(request) { request.| }", ["method", "headers", "url"]],
  ["members of a parameter with another name", "function onRequest(q, c) { c.se| }", ["session"]],
  ["members of the second parameter, inherited", "function onResponse(a, b) { b.| }", ["body", "statusCode"]],
  ["members of members", "function onRequest(r, c) { c.session.| }", ["id"]],
  ["members of a variable", "function onRequest(r) { const u = r.url; u.h| }", ["host"]],
  ["members of a result", "function onRequest(r) { url.parse('x').build('y').| }", ["host", "build"]],
  ["members of a constant", "console.|", ["log", "error"]],
  ["members of a namespace", "base64.de|", ["decode"]],
  ["members of a returned object", "function onRequest() { return { mod| } }", ["modified"]],
  ["members of an object in it", "function onRequest() { return { response: { st| } } }", ["statusCode"]],
  ["constants", "function onRequest() { ba| }", ["base64"]],
  ["functions of hooks", "onRe|", ["onRequest", "onResponse"]],
  ["nothing in a text", "'onRe|'", []],
  ["nothing in a comment", "// onRe|", []],
  ["nothing for an unknown object", "function f(x) { x.| }", []],
  ["no functions of hooks inside functions", "function onRequest() { onRe| }", []],
  ["nothing before anything is typed", "|", []],
] as const) {
  test(`completion offers ${what}`, async () => {
    assert.deepEqual(await offered(script), expected);
  });
}

test("on request, completion offers the members of a returned object before anything is typed", async () => {
  assert.deepEqual(await offered("function onRequest() { return { | } }", true), ["continue", "modified", "response"]);
});

test("a declaration's comment and signature explain the completion", () => {
  const [shown] = api.globals;
  assert.equal(shown?.doc, "Writes lines\nto the history.");
  const [log] = api.membersOf(shown?.type ?? null);
  assert.equal(log?.detail, "(...values: unknown[]): void");
});

test("recursive and unknown declarations end", () => {
  const recursive = readScriptApi("type A = B | A; type B = A; declare const a: A; declare const b: Missing;");
  assert.deepEqual(
    recursive.globals.map(({ type }) => recursive.membersOf(type)),
    [[], []],
  );
});
