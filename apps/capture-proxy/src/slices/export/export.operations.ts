import type { TrafficFilter, exportOperations } from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import { ApiError, notFound, validationError } from "#api/api-error.ts";
import type { SliceHost } from "#slice.ts";
import { curlText } from "./curl-text.ts";
import { curlCmdText, curlPowershellText } from "./curl-windows-text.ts";
import { checkBody, isHandshake, MAX_BODY_BYTES, reproducibleRequest } from "./export.check.ts";
import { fetchText } from "./fetch-text.ts";
import { httpieText } from "./httpie-text.ts";
import { pythonText } from "./python-text.ts";
import type { SnippetRequest } from "./snippet-request.ts";
import { wgetText } from "./wget-text.ts";

const WRITERS = {
  curl: curlText,
  "curl-powershell": curlPowershellText,
  "curl-cmd": curlCmdText,
  fetch: fetchText,
  python: pythonText,
  httpie: httpieText,
  wget: wgetText,
} as const;

/** Handlers of the exports: HAR documents, and requests as commands and code. */
export function createExportOperations({ store }: Pick<SliceHost, "store">): Handlers<typeof exportOperations> {
  const requestOf = async (id: string): Promise<SnippetRequest> => {
    const entry = (await store.getEntry(id, { includeBodies: false, decompressed: false })) ?? notFound("entry", id);
    // Tunnels are refused first: that says more than that nothing was stored.
    const bare = reproducibleRequest(entry, NOTHING);
    if (isHandshake(entry)) return bare;
    checkBody(entry);
    if (entry.request.body_state === "none") return bare;
    const range = { decoded: false, utf8: false, start: 0, end: MAX_BODY_BYTES };
    const part = (await store.readBody(id, "request", range)) ?? notFound("entry", id);
    if (part.bytes.length !== entry.request.body_stored_size) {
      throw new ApiError("CONFLICT", "The request's body is no longer stored");
    }
    return reproducibleRequest(entry, part.bytes);
  };
  return {
    exportHar: async ({ query, signal }) => {
      const { ids, ...filter } = query;
      if (ids !== undefined && Object.keys(filter).length > 0) {
        throw validationError([{ path: "query/ids", message: "cannot be combined with a filter" }]);
      }
      const { total, chunks } = await store.exportHar(filter satisfies TrafficFilter, idList(ids), signal);
      return { status: 200, headers: { "x-total-count": String(total) }, body: chunks };
    },
    exportCurl: async ({ params }) => ({ status: 200, body: { curl: curlText(await requestOf(params.id)) } }),
    exportSnippet: async ({ params, query }) => {
      const format = query.format ?? "curl";
      return { status: 200, body: { format, text: WRITERS[format](await requestOf(params.id)) } };
    },
  };
}

const NOTHING = new Uint8Array(0);

function idList(ids: string | undefined): string[] | undefined {
  return ids?.split(",").flatMap((id) => (id.trim() === "" ? [] : [id.trim()]));
}
