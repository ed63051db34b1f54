import type { SnippetRequest } from "./snippet-request.ts";

const MAX_ESCAPED_BYTES = 4096;

/** A Python program that needs only the standard library and sends every field in its original order. */
export function pythonText(request: SnippetRequest): string {
  const { method, scheme, authority, target, version, fields, body } = request;
  const isChunked = fields.some(
    ([name, value]) => name.toLowerCase() === "transfer-encoding" && /chunked/iu.test(value),
  );
  const isLong = body.length > MAX_ESCAPED_BYTES;
  const lines = [
    ...(isLong ? ["import base64"] : []),
    "import http.client",
    "",
    `connection = http.client.${scheme === "https" ? "HTTPSConnection" : "HTTPConnection"}(${literal(authority)})`,
    ...(version === "HTTP/1.0" ? ["connection._http_vsn, connection._http_vsn_str = 10, 'HTTP/1.0'"] : []),
    `connection.putrequest(${literal(method)}, ${literal(target)}, skip_host=True, skip_accept_encoding=True)`,
    ...fields.map(([name, value]) => `connection.putheader(${literal(name)}, ${literal(value)})`),
    `connection.endheaders(${endArguments(body, isChunked, isLong)})`,
    "response = connection.getresponse()",
    "print(response.status, response.reason)",
    "print(response.read().decode('utf-8', 'replace'))",
    "",
  ];
  return lines.join("\n");
}

function endArguments(body: Uint8Array, isChunked: boolean, isLong: boolean): string {
  if (body.length === 0 && !isChunked) return "";
  const bytes = isLong
    ? `base64.b64decode(${literal(Buffer.from(body).toString("base64"))})`
    : `b${literal(Buffer.from(body).toString("latin1"))}`;
  return isChunked ? `${bytes}, encode_chunked=True` : bytes;
}

/** One character per byte, as http.client encodes text. */
function literal(wire: string): string {
  const inner = wire.replaceAll(/[^\x20-\x26\x28-\x5b\x5d-\x7e]/gu, (character) => {
    if (character === "\n") return "\\n";
    return `\\x${(character.charCodeAt(0) & 0xff).toString(16).padStart(2, "0")}`;
  });
  return `'${inner}'`;
}
