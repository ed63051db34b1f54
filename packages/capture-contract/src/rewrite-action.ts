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
  description: "Its name, case-insensitive",
});
const regex = (of: string) => ({
  pattern: Type.String({ minLength: 1, maxLength: 1000, description: `A regular expression; every match in ${of}` }),
  replacement: text("`$1` and `$<name>` insert captured groups, `$&` the match, `$$` a dollar sign"),
  flags: Type.Optional(
    Type.String({
      pattern: "^[ims]{0,3}$",
      description: "`i`: case-insensitive; `m`: multi-line; `s`: a dot matches line breaks",
    }),
  ),
});
const append = (thing: string) =>
  Type.Optional(Type.Boolean({ description: `Add a further ${thing}; existing ones are kept` }));
const pointer = (description: string) =>
  Type.String({ maxLength: 1000, pattern: "^(?:/(?:[^~/]|~[01])*)*$", description });

function action<const N extends string, P extends TProperties>(name: N, description: string, properties: P) {
  return strictObject({ type: oneOf([name]), ...properties }, { description });
}

const kinds = [
  action("url_rewrite", "Requests: replaces text in the whole URL; scheme, host and port may change", regex("the URL")),
  action("set_header", "Sets a header field to one value, at its position or at the end", {
    name: fieldName,
    value: text("Its value"),
    append: append("field"),
  }),
  action("remove_header", "Removes all header fields of a name", { name: fieldName }),
  action("header_rewrite", "Replaces text in each header field of a name", { name: fieldName, ...regex("its value") }),
  action("body_rewrite", "Replaces text in the body; content coding and charset are kept", regex("the body")),
  action("query_param", "Requests: sets a query parameter to one value; the rest of the query is unchanged", {
    name: Type.String({ minLength: 1, maxLength: 255, description: "Its name, not percent-encoded" }),
    value: text("Its value, not percent-encoded"),
    append: append("parameter"),
  }),
  action("remove_query_param", "Requests: removes all query parameters of a name", {
    name: Type.String({ minLength: 1, maxLength: 255, description: "Its name, not percent-encoded" }),
  }),
  action(
    "map_to_file",
    "Serves a file or folder. For requests the origin is not contacted; for responses the body is replaced",
    {
      path: Type.String({
        minLength: 1,
        maxLength: 4096,
        description: "A file or folder below `<data_dir>/map-files` or a directory of `map_file_dirs`",
      }),
      prefix: Type.Optional(
        nullable(Type.String({ maxLength: 4096, pattern: "^/" }), {
          description: "With a folder: the URL path that corresponds to the folder. Default: `/`",
        }),
      ),
    },
  ),
  action(
    "map_to_url",
    "Requests: sends the request to another URL. An empty path, or one that ends in `/`, is put before the request's path; any other replaces it. A query replaces the request's query",
    { url: Type.String({ minLength: 1, maxLength: 8192, description: "An absolute http or https URL" }) },
  ),
  action(
    "allow_cors",
    "Allows pages of any origin to use it: responds to preflights with what they request, without contacting the origin, and makes responses readable, also with credentials; for rules of both directions",
    {
      max_age_secs: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: 86_400,
          description: "Seconds for which browsers cache the response to a preflight. Default: 5",
        }),
      ),
    },
  ),
  action("set_status", "Responses: sets the status", {
    code: Type.Integer({ minimum: 200, maximum: 599, description: "The status" }),
  }),
  action("set_method", "Requests: sets the method", {
    method: Type.String({ maxLength: 32, pattern: "^[A-Z][A-Z0-9_-]*$", description: "The method, in upper case" }),
  }),
  action("set_body", "Replaces the whole body", {
    content: Type.String({ maxLength: 8_388_608, description: "Text, encoded in the message's charset" }),
    base64: Type.Optional(Type.Boolean({ description: "`content` is base64 of the bytes" })),
    content_type: Type.Optional(
      nullable(Type.String({ minLength: 1, maxLength: 255, pattern: "^[\\x21-\\x7e][\\x20-\\x7e]*$" }), {
        description: "Media type of the new body. Default: unchanged",
      }),
    ),
  }),
  action("json_patch", "JSON Patch (RFC 6902) on a JSON body, all or nothing", {
    patch: Type.Array(
      strictObject({
        op: oneOf(["add", "remove", "replace", "move", "copy", "test"], { description: "What is done" }),
        path: pointer("JSON pointer to the target"),
        from: Type.Optional(pointer("JSON pointer to the source of `move` and `copy`")),
        value: Type.Optional(Type.Unknown({ description: "The value of `add`, `replace` and `test`" })),
      }),
      { minItems: 1, maxItems: 1000 },
    ),
  }),
  action("json_merge", "JSON Merge Patch (RFC 7396) on a JSON body", {
    patch: Type.Unknown({ description: "Members replace those of the body; null removes a member" }),
  }),
] as const;

/** The schema of {@link RewriteAction}. Patterns, replacements and places are checked where a rule is taken in. */
export const RewriteAction = Type.Unsafe<RewriteAction>({
  $id: "RewriteAction",
  type: "object",
  required: ["type"],
  discriminator: { propertyName: "type" },
  oneOf: kinds,
  description: "One action of a rule",
});
