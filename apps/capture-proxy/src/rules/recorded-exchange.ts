import type {
  RequestData,
  ResponseData,
  RewrittenRequest,
  RewrittenResponse,
  RuleTrace,
} from "@headworks/capture-contract";
import { reasonPhrase } from "@headworks/http-fields";
import { decodeContent } from "@headworks/http-fields/content-coding";
import { fieldValue, fieldValues, type RawFields } from "@headworks/http1";
import {
  type Content,
  exchangeUrl,
  type HttpVersion,
  type Original,
  type RequestMessage,
  type ResponseMessage,
  type TraceStep,
} from "#exchange/exchange.ts";
import { fieldPairs } from "#exchange/shown-message.ts";
import type { SyntheticResponse } from "#exchange/phases.ts";
import type { EditedExchange } from "./message-edit.ts";
import { readTextBody } from "./text-body.ts";
import { parseUrlTarget } from "./url-edit.ts";

const SHOWN_BYTES = 1_048_576;

type RecordedRequest = Pick<
  RequestData,
  "method" | "url" | "host" | "path" | "headers_list" | "http_version" | "body" | "body_encoding" | "body_state"
>;
type RecordedResponse = Pick<
  ResponseData,
  "status_code" | "status_message" | "headers_list" | "http_version" | "body" | "body_encoding" | "body_state"
>;

/** The messages of an entry. */
export interface RecordedMessages {
  readonly request: RecordedRequest;
  readonly response: RecordedResponse | null;
  readonly original_request: RecordedRequest | null;
  readonly original_response: RecordedResponse | null;
}

/** A stored entry as an exchange that rules can edit: nothing is sent or stored. */
export class RecordedExchange implements EditedExchange {
  request: RequestMessage;
  response: ResponseMessage | undefined;
  originalRequest: Original<RequestMessage> | undefined = undefined;
  readonly trace: RuleTrace[] = [];
  isChanged = false;
  #requestBody: StoredBody;
  #responseBody: StoredBody;

  constructor(entry: RecordedMessages) {
    const request = entry.original_request ?? entry.request;
    const response = entry.original_response ?? entry.response;
    this.request = requestMessage(request);
    this.response = response === null ? undefined : responseMessage(response);
    this.#requestBody = storedBody(request);
    this.#responseBody = response === null ? NO_BODY : storedBody(response);
  }

  addTrace({ kind, ruleId, ruleName, phase, changes }: TraceStep): void {
    this.trace.push({ kind, rule_id: ruleId, rule_name: ruleName, phase, changes: [...changes] });
  }

  changeRequest(): RequestMessage {
    this.isChanged = true;
    this.originalRequest ??= { message: { ...this.request, fields: [...this.request.fields] }, body: undefined };
    return this.request;
  }

  changeResponse(): ResponseMessage {
    if (this.response === undefined) throw new TypeError("There is no response to change");
    this.isChanged = true;
    return this.response;
  }

  get requestHasBody(): boolean {
    const { fields } = this.request;
    const length = fieldValue(fields, "content-length") ?? "0";
    return (
      this.#requestBody.bytes.length > 0 || length !== "0" || fieldValue(fields, "transfer-encoding") !== undefined
    );
  }

  requestContent(limitBytes: number): Promise<Content> {
    return Promise.resolve(contentOf(this.#requestBody, limitBytes));
  }

  responseContent(limitBytes: number): Promise<Content> {
    return Promise.resolve(contentOf(this.#responseBody, limitBytes));
  }

  setRequestContent(bytes: Buffer): void {
    this.isChanged = true;
    this.#requestBody = { bytes, isWhole: true };
  }

  setResponseContent(bytes: Buffer): void {
    this.isChanged = true;
    this.#responseBody = { bytes, isWhole: true };
  }

  respond({ status, reason, fields, body }: SyntheticResponse): void {
    this.isChanged = true;
    this.response = {
      status,
      reason: reason ?? reasonPhrase(status),
      version: "HTTP/1.1",
      fields: [...fields],
      trailers: undefined,
    };
    this.#responseBody = { bytes: body, isWhole: true };
  }

  async shownRequest(): Promise<RewrittenRequest> {
    const { method, fields } = this.request;
    return {
      method,
      url: exchangeUrl(this.request),
      headers_list: fieldPairs(fields),
      ...(await shownBody(this.#requestBody.bytes, fields)),
    };
  }

  async shownResponse(): Promise<RewrittenResponse | null> {
    if (this.response === undefined) return null;
    const { status, reason, fields } = this.response;
    return {
      status_code: status,
      status_message: reason,
      headers_list: fieldPairs(fields),
      ...(await shownBody(this.#responseBody.bytes, fields)),
    };
  }
}

interface StoredBody {
  readonly bytes: Buffer;
  /** False when the body was stored partly or not at all. */
  readonly isWhole: boolean;
}

const NO_BODY: StoredBody = { bytes: Buffer.alloc(0), isWhole: true };

function storedBody({
  body,
  body_encoding: encoding,
  body_state: state,
}: RecordedRequest | RecordedResponse): StoredBody {
  const isWhole = state === "none" || state === "complete";
  if (body === null) return { bytes: Buffer.alloc(0), isWhole };
  const bytes = encoding === "base64" ? Buffer.from(body.slice("base64:".length), "base64") : Buffer.from(body, "utf8");
  return { bytes, isWhole };
}

function contentOf({ bytes, isWhole }: StoredBody, limitBytes: number): Content {
  // A body stored partly cannot be tried; a live exchange might have it whole.
  if (!isWhole) return { kind: "gone" };
  return bytes.length > limitBytes ? { kind: "too-large" } : { kind: "complete", bytes };
}

function requestMessage(data: RecordedRequest): RequestMessage {
  const target = parseUrlTarget(data.url);
  const scheme = (/^[a-z]+/i.exec(data.url)?.[0] ?? "http").toLowerCase();
  return {
    method: data.method,
    scheme: scheme as RequestMessage["scheme"],
    host: typeof target === "string" ? data.host.toLowerCase() : target.host,
    port: typeof target === "string" ? 80 : target.port,
    path: data.path,
    version: (data.http_version ?? "HTTP/1.1") as HttpVersion,
    fields: data.headers_list.flat(),
    trailers: undefined,
  };
}

function responseMessage(data: RecordedResponse): ResponseMessage {
  return {
    status: data.status_code,
    reason: data.status_message ?? reasonPhrase(data.status_code),
    version: (data.http_version ?? "HTTP/1.1") as HttpVersion,
    fields: data.headers_list.flat(),
    trailers: undefined,
  };
}

type ShownBody = Pick<RewrittenRequest, "body" | "body_encoding" | "body_size" | "body_truncated">;

async function shownBody(coded: Buffer, fields: Readonly<RawFields>): Promise<ShownBody> {
  const decoded = await decodeContent(coded, fieldValues(fields, "content-encoding"));
  const bytes = decoded.stop === "limit" ? coded : Buffer.from(decoded.bytes);
  if (bytes.length === 0) return { body: null, body_encoding: null, body_size: 0, body_truncated: false };
  const part = bytes.subarray(0, SHOWN_BYTES);
  const facts = { body_size: bytes.length, body_truncated: bytes.length > part.length };
  const text = readTextBody(part, fieldValue(fields, "content-type"));
  if (text === undefined || text.charset === "octets" || text.text.includes("\0")) {
    return { body: `base64:${part.toString("base64")}`, body_encoding: "base64", ...facts };
  }
  return { body: text.text, body_encoding: "utf8", ...facts };
}
