import { nullable, oneOf, strictObject, Type } from "@headworks/contract-kit";
import type { TProperties } from "typebox";

/** One operation of a JSON Patch (RFC 6902). */
export interface JsonPatchOperation {
  readonly op: "add" | "remove" | "replace" | "move" | "copy" | "test";
  readonly path: string;
  readonly from?: string;
  readonly value?: unknown;
}

/** One thing that a rewrite rule does. */
export type RewriteAction =
  | { readonly type: "url_rewrite"; readonly pattern: string; readonly replacement: string; readonly flags?: string }
  | { readonly type: "set_header"; readonly name: string; readonly value: string; readonly append?: boolean }
  | { readonly type: "remove_header"; readonly name: string }
  | {
      readonly type: "header_rewrite";
      readonly name: string;
      readonly pattern: string;
      readonly replacement: string;
      readonly flags?: string;
    }
  | { readonly type: "body_rewrite"; readonly pattern: string; readonly replacement: string; readonly flags?: string }
  | { readonly type: "query_param"; readonly name: string; readonly value: string; readonly append?: boolean }
  | { readonly type: "remove_query_param"; readonly name: string }
  | { readonly type: "map_to_file"; readonly path: string; readonly prefix?: string | null }
  | { readonly type: "map_to_url"; readonly url: string }
  | { readonly type: "allow_cors"; readonly max_age_secs?: number }
  | { readonly type: "set_status"; readonly code: number }
  | { readonly type: "set_method"; readonly method: string }
  | {
      readonly type: "set_body";
      readonly content: string;
      readonly base64?: boolean;
      readonly content_type?: string | null;
    }
  | { readonly type: "json_patch"; readonly patch: readonly JsonPatchOperation[] }
  | { readonly type: "json_merge"; readonly patch: unknown };

const text = (description: string, maxLength = 8192) => Type.String({ maxLength, description });
const fieldName = Type.String({
  minLength: 1,
  maxLength: 255,
  pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$",
  description: "Its name, whatever the case of its letters",
});
const regex = (of: string) => ({
  pattern: Type.String({ minLength: 1, maxLength: 1000, description: `A regular expression; every match in ${of}` }),
  replacement: text("`$1` and `$<name>` stand for what groups captured, `$&` for the match, `$$` for a dollar sign"),
  flags: Type.Optional(
    Type.String({ pattern: "^[ims]{0,3}$", description: "`i`: any case; `m`: lines; `s`: a dot is any character" }),
  ),
});
const append = (thing: string) =>
  Type.Optional(Type.Boolean({ description: `Add a further ${thing} instead of replacing those there are` }));
const pointer = (description: string) =>
  Type.String({ maxLength: 1000, pattern: "^(?:/(?:[^~/]|~[01])*)*$", description });

function action<const N extends string, P extends TProperties>(name: N, description: string, properties: P) {
  return strictObject({ type: oneOf([name]), ...properties }, { description });
}

const kinds = [
  action("url_rewrite", "Requests: replaces in the whole URL; scheme, host and port may change", regex("the URL")),
  action("set_header", "Gives a header field one value, in its place, otherwise at the end", {
    name: fieldName,
    value: text("Its value"),
    append: append("field"),
  }),
  action("remove_header", "Removes all header fields of a name", { name: fieldName }),
  action("header_rewrite", "Replaces in each header field of a name", { name: fieldName, ...regex("its value") }),
  action(
    "body_rewrite",
    "Replaces in the body's text; codings and charset are undone and done again",
    regex("the body"),
  ),
  action("query_param", "Requests: gives a parameter of the query one value; nothing else in the query changes", {
    name: Type.String({ minLength: 1, maxLength: 255, description: "Its name, plain" }),
    value: text("Its value, plain"),
    append: append("parameter"),
  }),
  action("remove_query_param", "Requests: removes all parameters of a name from the query", {
    name: Type.String({ minLength: 1, maxLength: 255, description: "Its name, plain" }),
  }),
  action(
    "map_to_file",
    "Answers from a file or folder. On requests the origin is not asked; on answers the body is replaced",
    {
      path: Type.String({
        minLength: 1,
        maxLength: 4096,
        description: "A file, or a folder; below one of the directories of `map_file_dirs` or `<data_dir>/map-files`",
      }),
      prefix: Type.Optional(
        nullable(Type.String({ maxLength: 4096, pattern: "^/" }), {
          description: "With a folder: the beginning of the URL's path that stands for the folder; `/` when left out",
        }),
      ),
    },
  ),
  action(
    "map_to_url",
    "Requests: sends it to another place. A path that is left out or ends in `/` is put before the request's path, any other replaces it; a query replaces the request's query",
    { url: Type.String({ minLength: 1, maxLength: 8192, description: "An absolute http or https URL" }) },
  ),
  action(
    "allow_cors",
    "Lets pages of any origin use it: answers preflights with what they ask for, without asking the origin, and makes responses readable, with credentials too; for rules of both directions",
    {
      max_age_secs: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: 86_400,
          description: "Seconds for which browsers keep the response to a preflight; 5 when left out",
        }),
      ),
    },
  ),
  action("set_status", "Answers: another status", {
    code: Type.Integer({ minimum: 200, maximum: 599, description: "The status" }),
  }),
  action("set_method", "Requests: another method", {
    method: Type.String({ maxLength: 32, pattern: "^[A-Z][A-Z0-9_-]*$", description: "The method, in capitals" }),
  }),
  action("set_body", "Replaces the whole body", {
    content: Type.String({ maxLength: 8_388_608, description: "Text, encoded as the message's charset says" }),
    base64: Type.Optional(Type.Boolean({ description: "`content` is base64 of the bytes" })),
    content_type: Type.Optional(
      nullable(Type.String({ minLength: 1, maxLength: 255, pattern: "^[\\x21-\\x7e][\\x20-\\x7e]*$" }), {
        description: "Media type of the new body; left out, the field stays",
      }),
    ),
  }),
  action("json_patch", "JSON Patch (RFC 6902) on a JSON body, all of it or nothing", {
    patch: Type.Array(
      strictObject({
        op: oneOf(["add", "remove", "replace", "move", "copy", "test"], { description: "What is done" }),
        path: pointer("JSON pointer to the place"),
        from: Type.Optional(pointer("JSON pointer to where `move` and `copy` take the value from")),
        value: Type.Optional(Type.Unknown({ description: "The value of `add`, `replace` and `test`" })),
      }),
      { minItems: 1, maxItems: 1000 },
    ),
  }),
  action("json_merge", "JSON Merge Patch (RFC 7396) on a JSON body", {
    patch: Type.Unknown({ description: "Members replace those of the body; null removes one" }),
  }),
] as const;

/** The schema of {@link RewriteAction}. Patterns, replacements and places are checked where a rule is taken in. */
export const RewriteAction = Type.Unsafe<RewriteAction>({
  $id: "RewriteAction",
  type: "object",
  required: ["type"],
  discriminator: { propertyName: "type" },
  oneOf: kinds,
  description: "One thing that a rule does",
});
