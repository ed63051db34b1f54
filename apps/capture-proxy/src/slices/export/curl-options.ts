import { fieldsToTell, hasField, sendsBody, urlOf, valuesOf } from "./snippet-request.ts";
import type { SnippetRequest } from "./snippet-request.ts";

/** An option of curl: its long name and, where it takes one, its value (one character per byte). */
export type CurlOption = readonly [name: string, value?: string];

/** What curl would send or do by itself below this length; above it asks for `100 Continue` first. */
const EXPECTS_ABOVE_BYTES = 1000;

/** What curl writes itself, as it spells it; in HTTP/2 case is none of its own. */
const OWN_NAMES: ReadonlySet<string> = new Set(["Host", "Content-Length"]);

/** What of a target curl leaves alone. Anything else goes through `--request-target`. */
const PLAIN_TARGET = /^\/[A-Za-z0-9._~:/?@!$&'()*+,;=%[\]{}-]*$/u;
const DOT_SEGMENT = /\/(?:\.|%2e){1,2}(?:[/?]|$)/iu;

/**
 * The options and the URL that make curl send this request and nothing else, body left out: fields that curl would
 * add are suppressed, its rewriting of URLs is switched off where it would apply.
 */
export function curlOptions(request: SnippetRequest): { readonly url: string; readonly options: CurlOption[] } {
  const isInHttp2 = request.version === "HTTP/2";
  const options: CurlOption[] = [...versionOptions(request), ...methodOptions(request)];
  let url = urlOf(request);
  if (!PLAIN_TARGET.test(request.target) || request.target.endsWith("?")) {
    options.push(["request-target", request.target]);
    url = `${request.scheme}://${request.authority}/`;
  }
  if (/[[\]{}]/u.test(url)) options.push(["globoff"]);
  if (DOT_SEGMENT.test(url)) options.push(["path-as-is"]);
  const told = fieldsToTell(request, (name) => isInHttp2 || OWN_NAMES.has(name));
  // A Host of another spelling is a field like others to curl once it has been told to send none.
  if (told.some(([name]) => !isInHttp2 && name !== "Host" && name.toLowerCase() === "host")) {
    options.push(["header", "Host:"]);
  }
  for (const [name, value] of told) {
    options.push(["header", value === "" ? `${name};` : `${name}: ${value}`]);
  }
  for (const name of suppressed(request)) options.push(["header", `${name}:`]);
  return { url, options };
}

/** Over TLS curl would choose HTTP/2, which has other field names. */
function versionOptions(request: SnippetRequest): CurlOption[] {
  if (request.version === "HTTP/1.0") return [["http1.0"]];
  if (request.scheme === "http") return request.version === "HTTP/2" ? [["http2-prior-knowledge"]] : [];
  return request.version === "HTTP/2" ? [["http2"]] : [["http1.1"]];
}

function methodOptions(request: SnippetRequest): CurlOption[] {
  const { method } = request;
  if (method === "HEAD" && !sendsBody(request)) return [["head"]];
  // The answer to HEAD announces a body that never comes.
  if (method === "HEAD") return [["request", method], ["ignore-content-length"]];
  return method === "GET" && !sendsBody(request) ? [] : [["request", method]];
}

function suppressed(request: SnippetRequest): string[] {
  const added = ["Host", "User-Agent", "Accept"];
  if (sendsBody(request)) {
    added.push("Content-Type");
    if (request.body.length > EXPECTS_ABOVE_BYTES) added.push("Expect");
  }
  // Without a length of its own the body would otherwise get one; HTTP/1.0 cannot do without.
  if (request.body.length === 0 && sendsBody(request) && valuesOf(request, "content-length").length === 0) {
    added.push("Content-Length");
  }
  return added.filter((name) => !hasField(request, name.toLowerCase()));
}
