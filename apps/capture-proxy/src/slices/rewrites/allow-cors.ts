import type { RewriteAction } from "@headworks/capture-contract";
import { fieldValue, fieldValues } from "@headworks/http1";
import type { RawFields } from "@headworks/http1";
import { withField, withoutField } from "#rules/header-edit.ts";
import type { Apply, MessageEdit } from "#rules/message-edit.ts";

/** Default preflight cache time: short, since rules change. */
const DEFAULT_MAX_AGE_S = 5;

/** Fields that browsers hide from pages anyway, and hop-by-hop fields. */
const NOT_EXPOSED = /^(?:access-control-.*|set-cookie2?|connection|keep-alive|transfer-encoding|upgrade|trailer)$/;

/**
 * Lets pages of any origin use matching responses (Fetch standard, CORS protocol): preflights are answered with
 * everything they request, and responses are readable with all their fields, also with credentials.
 */
export function allowCors(action: RewriteAction & { readonly type: "allow_cors" }): {
  readonly request: Apply;
  readonly response: Apply;
} {
  const maxAge = String(action.max_age_secs ?? DEFAULT_MAX_AGE_S);
  return { request: (edit) => respondToPreflight(edit, maxAge), response: allowReading };
}

function respondToPreflight(edit: MessageEdit, maxAge: string): void {
  const { fields: requestFields } = edit.request;
  if (!isPreflight(edit)) return edit.note("the request is not a preflight");
  const origin = fieldValue(requestFields, "origin") ?? "";
  const requestedMethod = fieldValue(requestFields, "access-control-request-method") ?? "";
  const names = fieldValues(requestFields, "access-control-request-headers").join(", ");
  const isPrivate = fieldValue(requestFields, "access-control-request-private-network") === "true";
  edit.ownResponse = {
    status: 204,
    fields: [
      ...allowing(origin),
      "Access-Control-Allow-Methods",
      requestedMethod,
      ...(names === "" ? [] : ["Access-Control-Allow-Headers", names]),
      ...(isPrivate ? ["Access-Control-Allow-Private-Network", "true"] : []),
      "Access-Control-Max-Age",
      maxAge,
      "Vary",
      "Origin, Access-Control-Request-Method, Access-Control-Request-Headers",
    ],
    body: Buffer.alloc(0),
  };
  edit.changed(`answered the preflight of ${origin} for ${requestedMethod}`);
}

function isPreflight({ request: { method, fields } }: MessageEdit): boolean {
  const names = ["origin", "access-control-request-method"];
  return method === "OPTIONS" && names.every((name) => fieldValue(fields, name) !== undefined);
}

function allowReading(edit: MessageEdit): void {
  if (edit.isOwnResponse && isPreflight(edit)) return;
  const origin = fieldValue(edit.request.fields, "origin");
  if (origin === undefined) return edit.note("the request is not from a page of another origin");
  const { fields } = edit;
  // A wildcard has no effect with credentials, so names are listed.
  const names = new Set(fields.filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase()));
  const exposed = [...names].filter((name) => !NOT_EXPOSED.test(name));
  let changed: RawFields = [...fields];
  const allowed = [...allowing(origin)];
  if (exposed.length > 0) allowed.push("Access-Control-Expose-Headers", exposed.join(", "));
  for (let at = 0; at < allowed.length; at += 2) {
    changed = withField(
      withoutField(changed, allowed[at] ?? "").fields,
      allowed[at] ?? "",
      allowed[at + 1] ?? "",
      false,
    );
  }
  const varies = fieldValues(fields, "vary").join(", ");
  if (!/(?:^|,)\s*(?:origin|\*)\s*(?:,|$)/i.test(varies)) changed = withField(changed, "Vary", "Origin", true);
  edit.setFields(changed);
  edit.changed(`allowed reading by pages of ${origin}`);
}

function allowing(origin: string): RawFields {
  return ["Access-Control-Allow-Origin", origin, "Access-Control-Allow-Credentials", "true"];
}
