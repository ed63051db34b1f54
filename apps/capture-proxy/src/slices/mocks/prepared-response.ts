import { MOCK_LIMITS, type MockHeaders, type MockResponse } from "@headworks/capture-contract";
import { readJson } from "@headworks/json";
import { wireText } from "@headworks/http-fields";
import { encodeAsDeclared } from "@headworks/http-fields/content-coding";
import { fieldValue, hasField, type RawFields } from "@headworks/http1";
import type { SyntheticResponse } from "#exchange/phases.ts";
import type { FileReading } from "./body-file.ts";
import { compileTemplate, type Template, type TemplateRequest } from "./template.ts";

export interface ResponseSurroundings {
  readonly nowMs: number;
  readonly readFile: (path: string) => Promise<FileReading>;
}

export interface PreparedResponse {
  readonly response: MockResponse;
  /** True when the template uses the request body. */
  readonly needsBody: boolean;
  /** The delay in milliseconds, for a `random` in [0, 1). */
  delayMs(random: number): number;
  /** A promise only when a file is read. */
  make(request: TemplateRequest, surroundings: ResponseSurroundings): SyntheticResponse | Promise<SyntheticResponse>;
}

/** Statuses without content (RFC 9110 sections 15.3.5, 15.3.6 and 15.4.5). */
const WITHOUT_CONTENT = new Set([204, 205, 304]);
/** Framing fields, which the proxy sets itself. */
const FRAMING = new Set([
  "connection",
  "content-length",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);
const EMPTY = Buffer.alloc(0);

export function prepareResponse(response: MockResponse): PreparedResponse {
  const isTemplate = response.template_enabled;
  const fields = preparedFields(response, isTemplate);
  const announced = announcedLength(response);
  const type = fields.find(([name]) => name.toLowerCase() === "content-type")?.[1];
  const body = preparedBody(response, isTemplate, type);
  const { status_code: status, delay_ms: delay, delay_variance_ms: variance } = response;
  const made: SyntheticResponse | undefined =
    body.kind === "bytes" && fields.every(([, value]) => typeof value === "string")
      ? complete(status, rendered(fields, undefined, 0), body.bytes, body.defaultType)
      : undefined;
  const hasNoBody = body.kind === "bytes" && body.bytes.length === 0;
  return {
    response,
    needsBody:
      (body.kind === "template" && body.template.needsBody) ||
      (body.kind === "file" && isTemplate) ||
      fields.some(([, value]) => typeof value === "object" && value.needsBody),
    delayMs: (random) => Math.max(0, (delay ?? 0) + (variance ?? 0) * (random * 2 - 1)),
    make: (request, { nowMs, readFile }) => {
      if (hasNoBody && (request.method === "HEAD" || status === 304)) {
        return bodiless(status, rendered(fields, request, nowMs), announced);
      }
      // A copy: later phases may change the fields.
      if (made !== undefined) return { ...made, fields: [...made.fields] };
      const own = rendered(fields, request, nowMs);
      switch (body.kind) {
        case "bytes":
          return complete(status, own, body.bytes, body.defaultType);
        case "template": {
          const text = body.template.render(request, nowMs, MOCK_LIMITS.fileBytes);
          return complete(status, own, encodeAsDeclared(text, fieldValue(own, "content-type")), textType(text));
        }
        case "file":
          return readFile(body.path).then((reading) => {
            if (!reading.ok) return unreadable(body.path, reading.problem);
            const bytes = isTemplate ? filledIn(reading.bytes, request, nowMs) : reading.bytes;
            return complete(status, own, bytes, fileType(body.path));
          });
      }
    },
  };
}

/** The Content-Length of a rule without a body, as in responses to HEAD and 304. */
function announcedLength({ headers }: MockResponse): string | undefined {
  const pair = headerPairs(headers).find(([name]) => name.toLowerCase() === "content-length");
  return pair !== undefined && /^\d{1,15}$/.test(pair[1]) ? pair[1] : undefined;
}

/** A response without a body; keeps an announced length (RFC 9110 section 8.6). */
function bodiless(status: number, fields: RawFields, length: string | undefined): SyntheticResponse {
  return { status, fields: length === undefined ? fields : [...fields, "Content-Length", length], body: EMPTY };
}

type PreparedField = readonly [name: string, value: string | Template];

type PreparedBody =
  | { readonly kind: "bytes"; readonly bytes: Buffer; readonly defaultType: string | undefined }
  | { readonly kind: "template"; readonly template: Template }
  | { readonly kind: "file"; readonly path: string };

function preparedFields(response: MockResponse, isTemplate: boolean): PreparedField[] {
  // A text body is sent uncoded, so a Content-Encoding would be false.
  const isPlain = response.body !== null;
  return headerPairs(response.headers).flatMap(([name, value]): PreparedField[] => {
    const lowerName = name.toLowerCase();
    if (FRAMING.has(lowerName) || (isPlain && lowerName === "content-encoding")) return [];
    return [[name, isTemplate && value.includes("{{") ? compileTemplate(value) : wireText(value)]];
  });
}

export function headerPairs(headers: MockHeaders): [name: string, value: string][] {
  return Object.entries(headers).flatMap(([name, value]) =>
    (typeof value === "string" ? [value] : value).map((each): [string, string] => [name, each]),
  );
}

function preparedBody(response: MockResponse, isTemplate: boolean, type: string | Template | undefined): PreparedBody {
  if (response.body_file !== null) return { kind: "file", path: response.body_file };
  if (response.body_base64 !== null) {
    const bytes = Buffer.from(response.body_base64, "base64");
    return { kind: "bytes", bytes, defaultType: bytes.length === 0 ? undefined : "application/octet-stream" };
  }
  const text = response.body ?? "";
  // The charset of a templated type is unknown until rendering.
  if ((isTemplate && text.includes("{{")) || typeof type === "object") {
    return { kind: "template", template: compileTemplate(text) };
  }
  const bytes = encodeAsDeclared(text, type);
  return { kind: "bytes", bytes, defaultType: text === "" ? undefined : textType(text) };
}

function rendered(fields: readonly PreparedField[], request: TemplateRequest | undefined, nowMs: number): RawFields {
  const flat: RawFields = [];
  for (const [name, value] of fields) {
    flat.push(name, typeof value === "string" ? value : request ? fieldText(value.render(request, nowMs, 65_536)) : "");
  }
  return flat;
}

/** A value from a request must not contain line breaks. */
function fieldText(value: string): string {
  return wireText(value.replace(/[\u0000-\u0008\u000a-\u001f\u007f]+/g, " ").trim());
}

function complete(status: number, fields: RawFields, body: Buffer, defaultType: string | undefined): SyntheticResponse {
  if (WITHOUT_CONTENT.has(status)) {
    return { status, fields: status === 205 ? [...fields, "Content-Length", "0"] : fields, body: EMPTY };
  }
  const type = defaultType !== undefined && !hasField(fields, "content-type") ? ["Content-Type", defaultType] : [];
  return { status, fields: [...fields, ...type, "Content-Length", String(body.length)], body };
}

function filledIn(bytes: Buffer, request: TemplateRequest, nowMs: number): Buffer {
  return Buffer.from(compileTemplate(bytes.toString()).render(request, nowMs, MOCK_LIMITS.fileBytes));
}

function unreadable(path: string, problem: string): SyntheticResponse {
  const body = Buffer.from(`The body of this mock is unavailable: the file ${path} ${problem}\n`);
  return complete(500, ["X-Weir-Mock-Error", "body-file"], body, "text/plain; charset=utf-8");
}

/** The media type guessed from the text. */
function textType(text: string): string {
  if (/^\s*(?:<!doctype\s+html|<html)/i.test(text.slice(0, 200))) return "text/html; charset=utf-8";
  if (/^\s*[[{]/.test(text.slice(0, 200)) && isJsonText(text)) return "application/json";
  return "text/plain; charset=utf-8";
}

function isJsonText(text: string): boolean {
  try {
    readJson(text);
    return true;
  } catch {
    return false;
  }
}

const TYPES_BY_SUFFIX: Readonly<Record<string, string>> = {
  json: "application/json",
  html: "text/html; charset=utf-8",
  htm: "text/html; charset=utf-8",
  txt: "text/plain; charset=utf-8",
  xml: "application/xml",
  js: "text/javascript; charset=utf-8",
  mjs: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  csv: "text/csv; charset=utf-8",
  svg: "image/svg+xml",
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  gif: "image/gif",
  webp: "image/webp",
  ico: "image/x-icon",
  pdf: "application/pdf",
  wasm: "application/wasm",
  woff2: "font/woff2",
};

function fileType(path: string): string {
  const suffix = /\.([A-Za-z0-9]+)$/.exec(path)?.[1]?.toLowerCase() ?? "";
  return TYPES_BY_SUFFIX[suffix] ?? "application/octet-stream";
}
