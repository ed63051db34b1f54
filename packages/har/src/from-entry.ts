import { isBase64Text, LargeBody, type LargeText } from "./large-text.ts";
import {
  bodyBytes,
  fromHarTimings,
  MULTIPART_FORM,
  multipartForm,
  type OwnBodyRecord,
  type OwnRecord,
  readOwnRecord,
  readTimings,
  type RebuiltForm,
} from "./entry-parts.ts";
import type {
  HarBody,
  HarEntry,
  HarExchange,
  HarPair,
  HarPostData,
  HarResponse,
  HarText,
  HarWebSocketMessage,
} from "./har.ts";

/** Converts the text of a large body. */
type ReadLarge<Bytes> = (text: LargeText, isBase64: boolean) => Bytes;

/**
 * Converts an entry to an exchange. Entries of `toHarEntry` are restored exactly. Entries of other programs have
 * decoded bodies (`isEncoded` false, although the fields may name a coding) and no HTTP/2 pseudo fields; forms given as
 * parts are rebuilt, and are truncated if content is missing. Large bodies can be read once unless their storage allows
 * more. Throws a sentence for malformed large texts and invalid base64.
 */
export function fromHarEntry(entry: HarEntry): HarExchange {
  return fromLargeHarEntry(entry, (text, isBase64) => text.toBytes(isBase64));
}

/** Like `fromHarEntry`, with `read` converting the texts of large bodies. */
export function fromLargeHarEntry<Bytes>(entry: HarEntry, read: ReadLarge<Bytes>): HarExchange<Uint8Array | Bytes> {
  const own = readOwnRecord(entry["_weir"]);
  const { request, response } = entry;
  const { postData } = request;
  const headers = flatFields(request.headers, own);
  const form = own === undefined ? rebuiltForm(postData, headers) : undefined;
  const isBase64 = form === undefined && postData?._encoding === "base64";
  const sent = postData && { text: form?.text ?? postData.text, isBase64 };
  const sentBody = body(sent, request.bodySize, own, own?.request, read);
  const missing = missingBody(sent?.text, [request.bodySize], own);
  const fields = form === undefined ? headers : withContentType(headers, form.contentType);
  const isAnswered = own === undefined ? response.status > 0 : own.noResponse !== true;
  return {
    startedMs: Date.parse(entry.startedDateTime),
    request: {
      method: request.method,
      url: request.url,
      httpVersion: httpVersion(request.httpVersion, own),
      fields,
      ...mediaType(fields, postData?.mimeType ?? own?.requestType),
      body: form && sentBody ? withoutParts(sentBody, form) : sentBody,
      ...missing,
    },
    response: isAnswered ? exchangeResponse(request.method, response, own, read) : undefined,
    timings: readTimings(own?.timings) ?? fromHarTimings(entry.timings),
    serverAddress: own?.serverAddress ?? serverAddress(entry.serverIPAddress),
    clientAddress: own?.clientAddress,
    connectionId: entry.connection,
    note: entry.comment,
    ...messages(entry["_webSocketMessages"], own?.controlFrames ?? []),
    weir: {
      id: own?.id,
      session: own?.session,
      isPassthrough: own?.passthrough === true,
      failure: own?.failure,
      more: own?.more,
    },
  };
}

function exchangeResponse<Bytes>(
  method: string,
  response: HarResponse,
  own: OwnRecord | undefined,
  read: ReadLarge<Bytes>,
): HarExchange<Uint8Array | Bytes>["response"] {
  const { content } = response;
  const received =
    content.text === undefined ? undefined : { text: content.text, isBase64: content.encoding === "base64" };
  const { status } = response;
  // The size of such a response is that of a body that was not transferred.
  const isBodiless = method === "HEAD" || status < 200 || status === 204 || status === 304;
  const counts = isBodiless && own === undefined ? [] : [response.bodySize, content.size];
  const fields = flatFields(response.headers, own);
  return {
    status,
    reason: response.statusText,
    httpVersion: httpVersion(response.httpVersion, own),
    fields,
    ...mediaType(fields, content.mimeType),
    body: body(received, response.bodySize, own, own?.response, read),
    ...missingBody(received?.text, counts, own),
  };
}

/** A Content-Type field takes precedence. */
function mediaType(fields: readonly string[], mimeType = ""): { readonly mediaType?: string } {
  return mimeType === "" || contentTypeAt(fields) >= 0 ? {} : { mediaType: mimeType };
}

/** The first positive count and no body, for documents with a body size but no text. */
function missingBody(
  text: HarText | undefined,
  counts: readonly number[],
  own: OwnRecord | undefined,
): { readonly body: undefined; readonly missingBodyBytes: number } | undefined {
  const isMissing = text === undefined || (text === "" && own === undefined);
  const bytes = isMissing ? counts.find((count) => count > 0) : undefined;
  return bytes === undefined ? undefined : { body: undefined, missingBodyBytes: bytes };
}

/** Programs write versions differently; Weir's entries hold the original. */
function httpVersion(written: string, own: OwnRecord | undefined): string {
  if (own !== undefined) return written;
  const lower = written.toLowerCase();
  if (/^(?:http\/)?(?:h?2|2\.0|h2c)$/.test(lower)) return "HTTP/2";
  if (/^(?:http\/)?(?:h?3|3\.0)$/.test(lower)) return "HTTP/3";
  return /^http\/\d/.test(lower) ? written.toUpperCase() : "HTTP/1.1";
}

function flatFields(headers: readonly HarPair[], own: OwnRecord | undefined): readonly string[] {
  if (own !== undefined) return headers.flatMap(({ name, value }) => [name, value]);
  return headers
    .filter(({ name }) => name !== "" && !name.startsWith(":"))
    .flatMap(({ name, value }) => sentValues(name, value).flatMap((each) => [name, each]));
}

/** Browsers join repeated fields by LF; after CRLF or before white space it is a folded line. */
function sentValues(name: string, value: string): readonly string[] {
  if (!value.includes("\n")) return [value];
  const lineEnd = name.toLowerCase() === "set-cookie" ? /\r?\n/ : /(?<!\r)\n(?![ \t])/;
  return value.split(lineEnd).filter((line) => line !== "");
}

/** A body that another program gave only as parts. The boundary of the header field takes precedence: it was sent. */
function rebuiltForm(postData: HarPostData | undefined, fields: readonly string[]): RebuiltForm | undefined {
  if (postData?.text !== "" || postData.params === undefined) return undefined;
  const at = contentTypeAt(fields);
  const sent = at < 0 ? "" : (fields[at + 1] ?? "");
  const type = [sent, postData.mimeType].find((each) => MULTIPART_FORM.test(each) && /;\s*boundary=/i.test(each));
  if (type === undefined && !MULTIPART_FORM.test(postData.mimeType)) return undefined;
  return multipartForm(postData.params, type ?? postData.mimeType);
}

function withoutParts<Bytes>(sent: HarBody<Bytes>, { missingParts }: RebuiltForm): HarBody<Bytes> {
  return missingParts.length === 0 ? sent : { ...sent, isTruncated: true, missingParts };
}

/** Index of the field name; negative if missing. */
function contentTypeAt(fields: readonly string[]): number {
  return fields.findIndex((text, at) => at % 2 === 0 && text.toLowerCase() === "content-type");
}

function withContentType(fields: readonly string[], value: string): readonly string[] {
  const at = contentTypeAt(fields);
  return at < 0 ? [...fields, "Content-Type", value] : fields.with(at + 1, value);
}

function body<Bytes>(
  shown: { readonly text: HarText; readonly isBase64: boolean } | undefined,
  bodySize: number,
  own: OwnRecord | undefined,
  record: OwnBodyRecord | undefined,
  read: ReadLarge<Bytes>,
): HarBody<Uint8Array | Bytes> | undefined {
  if (shown === undefined) return undefined;
  const bytes = textBytes(record?.raw === undefined ? shown : { text: record.raw, isBase64: true }, read);
  const foreign = bodySize < 0 ? undefined : bodySize;
  const known = bytes instanceof Uint8Array ? bytes.length : undefined;
  const noted = record?.transferred === undefined ? known : (record.transferred ?? undefined);
  return {
    bytes,
    isEncoded: record?.encoded === true,
    isTruncated: record?.truncated === true,
    ...(own === undefined && !shown.isBase64 && { isText: true }),
    transferredBytes: own === undefined ? foreign : noted,
  };
}

function textBytes<Bytes>(
  { text, isBase64 }: { readonly text: HarText; readonly isBase64: boolean },
  read: ReadLarge<Bytes>,
): Uint8Array | Bytes {
  if (typeof text === "string") return bodyBytes({ text, isBase64 });
  return text instanceof LargeBody ? text.toBytes() : read(text, isBase64);
}

function serverAddress(address: string | undefined): string | undefined {
  return address === undefined || address === "" ? undefined : address.replace(/^\[(.*)\]$/, "$1");
}

function messages(
  value: unknown,
  controlFrames: NonNullable<OwnRecord["controlFrames"]>,
): Pick<HarExchange, "webSocketMessages" | "unreadMessages"> {
  if (!Array.isArray(value)) return { webSocketMessages: undefined };
  const list: readonly unknown[] = value;
  let next = 0;
  const inOrder = list.flatMap((item, index) => {
    const first = next;
    while (Number(controlFrames[next]?.["before"]) <= index) next += 1;
    return [...controlFrames.slice(first, next), item];
  });
  const written = [...inOrder, ...controlFrames.slice(next)];
  const found = written.flatMap((item): HarWebSocketMessage[] => {
    if (typeof item !== "object" || item === null) return [];
    const members = new Map(Object.entries<unknown>({ ...item }));
    const [type, time, opcode, data] = ["type", "time", "opcode", "data"].map((name) => members.get(name));
    if (
      (type !== "send" && type !== "receive") ||
      typeof time !== "number" ||
      !Number.isSafeInteger(Math.round(time * 1000)) ||
      typeof opcode !== "number" ||
      !(opcode >= 0 && opcode <= 15) ||
      typeof data !== "string"
    ) {
      return [];
    }
    const isBase64 = opcode !== 1 || members.get("_encoding") === "base64";
    if (isBase64 && !isBase64Text(data)) return [];
    return [
      {
        from: type === "send" ? "client" : "server",
        atMs: Math.round(time * 1000),
        opcode,
        data: bodyBytes({ text: data, isBase64 }),
      },
    ];
  });
  const unreadMessages = written.length - found.length;
  return { webSocketMessages: found, ...(unreadMessages > 0 && { unreadMessages }) };
}
