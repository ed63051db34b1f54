import type { RewriteAction } from "@headworks/capture-contract";
import { reasonPhrase } from "@headworks/http-fields";
import type { SyntheticResponse } from "#exchange/phases.ts";
import { fileType } from "./file-types.ts";
import { withField, withoutField } from "./header-edit.ts";
import type { MappedFiles } from "./mapped-files.ts";
import type { MessageEdit } from "./message-edit.ts";
import { splitQuery } from "./url-edit.ts";

type MapToFile = RewriteAction & { type: "map_to_file" };

/** Requests are answered from the file without asking the origin; answers get it as their body. */
export function mapToFile({ path, prefix }: MapToFile, files: MappedFiles): (edit: MessageEdit) => Promise<void> {
  const isFolder = path.endsWith("/") || typeof prefix === "string";
  const folder = isFolder && path.length > 1 ? path.replace(/\/+$/, "") : path;
  return async (edit) => {
    if (edit.isOwnResponse) return edit.note("the answer is from the file already");
    if (edit.request.scheme === "ws" || edit.request.scheme === "wss") {
      return edit.note("a WebSocket is not answered from a file");
    }
    const rest = isFolder ? restBehind(splitQuery(edit.request.path)[0], prefix ?? "/") : undefined;
    if (isFolder && rest === undefined) return edit.note(`the path does not begin with ${prefix ?? "/"}`);
    const search = await files.read(folder, rest);
    if (search.kind !== "found") {
      edit.changed(`answered with 404: ${search.reason}`);
      edit.ownResponse = missing(search.reason);
      return;
    }
    const type = fileType(search.path);
    edit.changed(`answered from ${search.path} (${search.bytes.length} bytes, ${type})`);
    if (edit.phase === "request") edit.ownResponse = found(search.bytes, type);
    else await replaceResponse(edit, search.bytes, type);
  };
}

/** The path behind a prefix that ends between two segments. */
function restBehind(path: string, prefix: string): string | undefined {
  const base = prefix.replace(/\/+$/, "");
  return path === base || path.startsWith(`${base}/`) ? path.slice(base.length) : undefined;
}

/** Nothing that a rule answers may stay in a browser's cache after the rule is gone. */
const NO_STORE = ["Cache-Control", "no-store"];

function found(bytes: Buffer, type: string): SyntheticResponse {
  return {
    status: 200,
    fields: ["Content-Type", type, "Content-Length", String(bytes.length), ...NO_STORE],
    body: bytes,
  };
}

function missing(reason: string): SyntheticResponse {
  const body = Buffer.from(`Weir: a rewrite rule answers this from a file, but ${reason}.\n`);
  const fields = ["Content-Type", "text/plain; charset=utf-8", "Content-Length", String(body.length), ...NO_STORE];
  return { status: 404, fields, body };
}

/** Statuses that no whole body can have. */
const WITHOUT_WHOLE_BODY = new Set([204, 205, 206, 304]);

async function replaceResponse(edit: MessageEdit, bytes: Buffer, type: string): Promise<void> {
  const { status } = edit.response;
  if (WITHOUT_WHOLE_BODY.has(status)) {
    const response = edit.changeResponse();
    response.status = 200;
    response.reason = reasonPhrase(200);
    edit.changed(`status ${status} to 200`);
  }
  const whole = withoutField(withField(edit.fields, "Content-Type", type, false), "Content-Range").fields;
  edit.setFields(whole);
  await edit.replaceBody(bytes);
}
