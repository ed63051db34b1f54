import { defineOperations, media, oneOf, strictObject, Type } from "@headworks/contract-kit";
import { COUNTED, EntryIdParams } from "./primitives.ts";
import { TrafficFilter } from "./traffic.ts";

/** Command lines and snippets that reproduce a request. */
export const SNIPPET_FORMATS = ["curl", "curl-powershell", "curl-cmd", "fetch", "python", "httpie", "wget"] as const;

export const exportOperations = defineOperations({
  exportHar: {
    method: "GET",
    path: "/export/har",
    summary: "Traffic of the active session as HAR 1.2, oldest first, streamed",
    access: "traffic:export",
    responseFields: COUNTED,
    query: strictObject({
      ...TrafficFilter.properties,
      ids: Type.Optional(
        Type.String({ maxLength: 400_000, description: "Comma list of entries, instead of a filter" }),
      ),
    }),
    responses: { 200: media("application/json", "HAR 1.2; `X-Total-Count` is the number of entries") },
  },
  exportCurl: {
    method: "GET",
    path: "/export/curl/{id}",
    summary: "A cURL command that repeats the request byte for byte",
    access: "traffic:export",
    params: EntryIdParams,
    responses: { 200: strictObject({ curl: Type.String() }) },
    expose: { mcp: { name: "export_curl", readOnly: true } },
  },
  exportSnippet: {
    method: "GET",
    path: "/export/snippet/{id}",
    summary: "The request as a command line or code",
    access: "traffic:export",
    params: EntryIdParams,
    query: strictObject({
      format: Type.Optional(
        oneOf([...SNIPPET_FORMATS], { default: "curl", description: "Target program or language" }),
      ),
    }),
    responses: { 200: strictObject({ format: oneOf([...SNIPPET_FORMATS]), text: Type.String() }) },
  },
});
