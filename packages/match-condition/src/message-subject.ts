import type { MessageSide } from "@headworks/capture-contract";
import { isTextual } from "@headworks/http-fields";
import { fieldValues } from "@headworks/query-language";
import type { BodyText, MatchSubject } from "./subject.ts";

/** The used members of a request in API form, such as `request` of entries. */
export interface RequestLike {
  readonly method: string;
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Takes precedence over `headers`. */
  readonly headers_list?: readonly (readonly [name: string, value: string])[];
  readonly body?: string | null;
  readonly body_encoding?: "utf8" | "base64" | null;
}

/** The same of a response. */
export type ResponseLike = Pick<RequestLike, "headers" | "headers_list" | "body" | "body_encoding"> & {
  readonly status_code: number;
};

export type BodyReader = (message: RequestLike | ResponseLike, fields: readonly string[]) => BodyText;

/**
 * A subject made of a request and optionally its response in API form. Without `readBody` only text bodies without
 * content coding are available, as in browsers.
 */
export function messageSubject(
  request: RequestLike,
  response: ResponseLike | null | undefined,
  phase: MessageSide,
  readBody: BodyReader = plainBody,
): MatchSubject {
  const parts = urlParts(request.url);
  const requestFields = flatFields(request);
  const hasResponse = phase === "response" && response !== null && response !== undefined;
  const responseFields = hasResponse ? flatFields(response) : [];
  return {
    ...parts,
    phase,
    method: request.method,
    url: request.url,
    status: hasResponse ? response.status_code : undefined,
    requestFields: () => requestFields,
    responseFields: () => responseFields,
    requestText: () => readBody(request, requestFields),
    responseText: () => (hasResponse ? readBody(response, responseFields) : undefined),
  };
}

const URL_PARTS =
  /^([a-z][a-z0-9+.-]*):\/\/(?:[^/?#@]*@)?(?:\[([^\]/?#]*)\]|([^:/?#]*))(?::(\d+))?([^?#]*)(?:\?([^#]*))?/i;
const STANDARD_PORTS: Readonly<Record<string, number>> = { http: 80, ws: 80, https: 443, wss: 443 };

/** Splits a URL without resolving, decoding or validating it. */
function urlParts(url: string): Pick<MatchSubject, "scheme" | "host" | "port" | "path" | "query"> {
  const [, scheme = "", address, name = "", port, path = "", query = ""] = URL_PARTS.exec(url) ?? [];
  const lowerScheme = scheme.toLowerCase();
  const standard = Object.hasOwn(STANDARD_PORTS, lowerScheme) ? STANDARD_PORTS[lowerScheme] : undefined;
  return {
    scheme: lowerScheme,
    host: (address ?? name).toLowerCase(),
    port: port === undefined ? (standard ?? 0) : Number(port),
    path: path === "" ? "/" : path,
    query,
  };
}

function flatFields({ headers_list: list, headers }: RequestLike | ResponseLike): readonly string[] {
  return (list ?? Object.entries(headers ?? {})).flat();
}

function plainBody({ body, body_encoding: encoding }: RequestLike | ResponseLike, fields: readonly string[]): BodyText {
  if (body === undefined || body === null || body === "") return undefined;
  const coding = fieldValues(fields, "content-encoding").join(",").trim().toLowerCase();
  if (coding !== "" && coding !== "identity") return undefined;
  if (encoding === "utf8") return body;
  if (encoding === "base64" || body.startsWith("base64:")) {
    return isTextual(fieldValues(fields, "content-type")[0]) ? utf8OfBase64(body) : undefined;
  }
  return body;
}

function utf8OfBase64(body: string): string | undefined {
  try {
    const binary = atob(body.replace(/^base64:/, ""));
    return new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(binary, (unit) => unit.charCodeAt(0)));
  } catch {
    return undefined;
  }
}
