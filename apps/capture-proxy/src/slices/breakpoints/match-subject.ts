// Tested by ../../../test/breakpoints-matching.test.ts
import { decodeContent, decodeText } from "@headworks/http-fields/content-coding";
import { fieldValue, fieldValues } from "@headworks/http1";
import type { BodyText, MatchSubject } from "@headworks/match-condition";
import { exchangeUrl } from "#exchange/exchange.ts";
import type { Content, Exchange } from "#exchange/exchange.ts";

/** The bodies of an exchange as far as conditions may look into them. */
export interface KnownTexts {
  readonly request: BodyText;
  readonly response: BodyText;
}

/** What a condition sees of an exchange. */
export function subjectOf(
  exchange: Pick<Exchange, "request" | "response">,
  phase: "request" | "response",
  texts: KnownTexts,
): MatchSubject {
  const { request, response } = exchange;
  const { method, scheme, host, port } = request;
  const query = request.path.indexOf("?");
  return {
    phase,
    method,
    scheme,
    host,
    port,
    path: query === -1 ? request.path : request.path.slice(0, query),
    query: query === -1 ? "" : request.path.slice(query + 1),
    url: exchangeUrl(request),
    status: phase === "request" ? undefined : response?.status,
    requestFields: () => request.fields,
    responseFields: () => (phase === "request" ? [] : (response?.fields ?? [])),
    requestText: () => texts.request,
    responseText: () => texts.response,
  };
}

/** A body as text, content codings undone; undefined for a body that is not there whole or cannot be read. */
export async function textOfContent(
  content: Content,
  fields: readonly string[],
  maxBytes: number,
): Promise<string | undefined> {
  if (content.kind !== "complete" || content.bytes.length === 0) return undefined;
  const list = [...fields];
  const { bytes, stop } = await decodeContent(content.bytes, fieldValues(list, "content-encoding"), { maxBytes });
  if (stop !== undefined) return undefined;
  return decodeText(bytes, fieldValue(list, "content-type")).text;
}
