/** Negotiated parameters of permessage-deflate (RFC 7692, section 7.1). */
export interface DeflateParameters {
  readonly serverNoContextTakeover: boolean;
  readonly clientNoContextTakeover: boolean;
  /** 8 to 15. */
  readonly serverMaxWindowBits: number;
  readonly clientMaxWindowBits: number;
}

/** What an answer's `Sec-WebSocket-Extensions` agreed on. */
export interface NegotiatedExtensions {
  /** undefined: messages are not compressed. */
  readonly deflate: DeflateParameters | undefined;
  /** Extensions that are not known here, or permessage-deflate with parameters that it does not have: what frames mean is open. */
  readonly unknown: readonly string[];
}

interface Extension {
  readonly name: string;
  readonly parameters: ReadonlyMap<string, string | true>;
  readonly text: string;
}

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/u;

/** Reads the values of an answer's `Sec-WebSocket-Extensions`. */
export function readDeflate(values: readonly string[]): NegotiatedExtensions {
  let deflate: DeflateParameters | undefined;
  const unknown: string[] = [];
  for (const extension of values.flatMap((value) => readList(value))) {
    const parameters = extension.name === "permessage-deflate" && !deflate ? deflateOf(extension) : undefined;
    if (parameters === undefined) unknown.push(extension.text);
    else deflate = parameters;
  }
  return { deflate, unknown };
}

/** undefined: a parameter is unknown, has a value it must not have, or stands there twice. */
function deflateOf({ parameters }: Extension): DeflateParameters | undefined {
  const agreed = {
    serverNoContextTakeover: false,
    clientNoContextTakeover: false,
    serverMaxWindowBits: 15,
    clientMaxWindowBits: 15,
  };
  for (const [name, value] of parameters) {
    switch (name) {
      case "server_no_context_takeover":
        if (value !== true) return undefined;
        agreed.serverNoContextTakeover = true;
        break;
      case "client_no_context_takeover":
        if (value !== true) return undefined;
        agreed.clientNoContextTakeover = true;
        break;
      case "server_max_window_bits":
      case "client_max_window_bits": {
        const bits = value === true ? undefined : windowBits(value);
        if (bits === undefined) return undefined;
        agreed[name === "server_max_window_bits" ? "serverMaxWindowBits" : "clientMaxWindowBits"] = bits;
        break;
      }
      default:
        return undefined;
    }
  }
  return agreed;
}

function windowBits(value: string): number | undefined {
  return /^(?:[89]|1[0-5])$/u.test(value) ? Number(value) : undefined;
}

/** RFC 6455, 9.1: `extension; param; param=value, extension`; values may be quoted tokens. */
function readList(value: string): Extension[] {
  const extensions: Extension[] = [];
  for (const item of splitOutsideQuotes(value, ",")) {
    const text = item.trim();
    if (text === "") continue;
    const [name = "", ...rest] = splitOutsideQuotes(text, ";").map((part) => part.trim());
    const parameters = new Map<string, string | true>();
    let isValid = TOKEN.test(name);
    for (const part of rest) {
      const equals = part.indexOf("=");
      const key = equals === -1 ? part : part.slice(0, equals).trim();
      const raw = equals === -1 ? true : unquoted(part.slice(equals + 1).trim());
      if (!TOKEN.test(key) || raw === undefined || parameters.has(key)) isValid = false;
      else parameters.set(key, raw);
    }
    extensions.push({ name: isValid ? name : "", parameters, text });
  }
  return extensions;
}

function unquoted(value: string): string | undefined {
  const inner = value.length >= 2 && value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value;
  const plain = inner === value ? value : inner.replaceAll(/\\(.)/gu, "$1");
  return TOKEN.test(plain) ? plain : undefined;
}

function splitOutsideQuotes(value: string, separator: string): string[] {
  const parts: string[] = [];
  let isQuoted = false;
  let from = 0;
  for (let at = 0; at < value.length; at += 1) {
    const character = value[at];
    if (isQuoted && character === "\\") at += 1;
    else if (character === '"') isQuoted = !isQuoted;
    else if (character === separator && !isQuoted) {
      parts.push(value.slice(from, at));
      from = at + 1;
    }
  }
  parts.push(value.slice(from));
  return parts;
}
