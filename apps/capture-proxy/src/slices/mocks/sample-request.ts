import type { MockSampleRequest, RequestData } from "@headworks/capture-contract";
import { hasField } from "@headworks/http1";
import type { RawFields } from "@headworks/http1";
import { validationError } from "#api/api-error.ts";
import type { RequestMessage, Scheme } from "#exchange/exchange.ts";
import { headerPairs } from "./prepared-response.ts";
import { RequestSubject } from "./request-subject.ts";

const PORTS: Readonly<Record<string, number>> = { http: 80, https: 443, ws: 80, wss: 443 };

/** A request that somebody wrote down, body included. Throws 400 when its URL is none. */
export async function sampleSubject(sample: MockSampleRequest | RequestData, place: string): Promise<RequestSubject> {
  const { message, body } = sampleRequest(sample, place);
  const subject = new RequestSubject(message);
  await subject.readBody(body);
  return subject;
}

/** The same as a message and its body, which is content-coded when its fields say so. */
function sampleRequest(
  sample: MockSampleRequest | RequestData,
  place: string,
): { readonly message: RequestMessage; readonly body: Buffer | undefined } {
  const url = URL.parse(sample.url);
  const scheme = url?.protocol.replace(/:$/, "") ?? "";
  if (url === null || PORTS[scheme] === undefined || url.hostname === "") {
    throw validationError([{ path: `${place}/url`, message: "must be an absolute URL with http, https, ws or wss" }]);
  }
  const fields = sampleFields(sample);
  if (!hasField(fields, "host")) fields.unshift("Host", url.host);
  return {
    message: {
      method: sample.method ?? "GET",
      scheme: scheme as Scheme,
      host: url.hostname.replace(/^\[|\]$/g, ""),
      port: url.port === "" ? (PORTS[scheme] ?? 0) : Number(url.port),
      path: writtenPath(sample.url) ?? `${url.pathname}${url.search}`,
      version: "HTTP/1.1",
      fields,
      trailers: undefined,
    },
    body: sampleBody(sample),
  };
}

/** Path and query as they were written: a parser of URLs would tidy them up, and a proxy does not. */
function writtenPath(url: string): string | undefined {
  const written = /^[a-z]+:\/\/[^/?#]+(\/[^#]*)/i.exec(url)?.[1];
  return written !== undefined && /^[\x21-\x7e]+$/.test(written) ? written : undefined;
}

function sampleFields(sample: MockSampleRequest | RequestData): RawFields {
  const fields: RawFields = [];
  if (sample.headers_list !== undefined) {
    for (const [name, value] of sample.headers_list) fields.push(name, value);
  } else {
    for (const [name, value] of headerPairs(sample.headers ?? {})) fields.push(name, value);
  }
  const type = sample.content_type ?? null;
  if (type !== null && !hasField(fields, "content-type")) fields.push("Content-Type", type);
  return fields;
}

function sampleBody({ body, body_encoding: encoding }: MockSampleRequest | RequestData): Buffer | undefined {
  if (body === undefined || body === null) return undefined;
  if (encoding === "base64" || (encoding !== "utf8" && body.startsWith("base64:"))) {
    return Buffer.from(body.replace(/^base64:/, ""), "base64");
  }
  return Buffer.from(body);
}
