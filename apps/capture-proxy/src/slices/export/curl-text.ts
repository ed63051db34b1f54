import { bodyCommand, bodyWord, shellWord } from "./shell-words.ts";
import { writtenFields, hasField, sendsBody, type SnippetRequest, urlOf, valuesOf } from "./snippet-request.ts";

const SHORT_NAMES: Readonly<Record<string, string>> = { header: "-H" };

/**
 * A command for any POSIX shell that resends the request byte for byte except for fields of the connection: curl writes
 * Host first and Content-Length last in their usual spelling, and chooses chunk boundaries.
 */
export function curlText(request: SnippetRequest): string {
  const { url, options } = curlOptions(request);
  const words = options.map(([name, value]) => {
    const option = SHORT_NAMES[name] ?? `--${name}`;
    return value === undefined ? option : `${option} ${shellWord(value)}`;
  });
  const lines = [`curl ${shellWord(url)}`, ...words];
  if (!sendsBody(request)) return joined(lines);
  const word = bodyWord(request.body);
  if (word !== undefined) return joined([...lines, `--data-raw ${word}`]);
  const { command, after } = bodyCommand(request.body);
  const [first, ...rest] = [...lines, "--data-binary @-"];
  return joined([`${command} | ${first}`, ...rest]) + after;
}

function joined(lines: readonly string[]): string {
  return lines.join(" \\\n  ");
}

/** A curl option: its long name and, if it takes one, its value (one character per byte). */
export type CurlOption = readonly [name: string, value?: string];

/** Above this body size curl sends `Expect: 100-continue`. */
const EXPECTS_ABOVE_BYTES = 1000;

/** Fields that curl writes itself, in its spelling; HTTP/2 names have no case. */
const OWN_NAMES: ReadonlySet<string> = new Set(["Host", "Content-Length"]);

/** Targets that curl sends unchanged. Others use `--request-target`. */
const PLAIN_TARGET = /^\/[A-Za-z0-9._~:/?@!$&'()*+,;=%[\]{}-]*$/u;
const DOT_SEGMENT = /\/(?:\.|%2e){1,2}(?:[/?]|$)/iu;

/**
 * Options and URL that make curl send exactly this request without its body: fields that curl would add are suppressed,
 * and its URL rewriting is switched off where it would apply.
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
  const fields = writtenFields(request, (name) => isInHttp2 || OWN_NAMES.has(name));
  // With its own Host suppressed, curl treats a Host of another spelling as an ordinary field.
  if (fields.some(([name]) => !isInHttp2 && name !== "Host" && name.toLowerCase() === "host")) {
    options.push(["header", "Host:"]);
  }
  for (const [name, value] of fields) {
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
  // The response to HEAD announces a body that never comes.
  if (method === "HEAD") return [["request", method], ["ignore-content-length"]];
  return method === "GET" && !sendsBody(request) ? [] : [["request", method]];
}

function suppressed(request: SnippetRequest): string[] {
  const added = ["Host", "User-Agent", "Accept"];
  if (sendsBody(request)) {
    added.push("Content-Type");
    if (request.body.length > EXPECTS_ABOVE_BYTES) added.push("Expect");
  }
  // Otherwise curl would announce a length; HTTP/1.0 requires one.
  if (request.body.length === 0 && sendsBody(request) && valuesOf(request, "content-length").length === 0) {
    added.push("Content-Length");
  }
  return added.filter((name) => !hasField(request, name.toLowerCase()));
}
