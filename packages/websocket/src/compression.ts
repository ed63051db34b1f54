import { constants, deflateRawSync, inflateRawSync } from "node:zlib";

/** Negotiated parameters of permessage-deflate (RFC 7692, section 7.1). */
export interface DeflateParameters {
  readonly serverNoContextTakeover: boolean;
  readonly clientNoContextTakeover: boolean;
  /** 8 to 15. */
  readonly serverMaxWindowBits: number;
  readonly clientMaxWindowBits: number;
}

/** The extensions agreed on in a response's `Sec-WebSocket-Extensions`. */
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

/** Result of decompressing a message. */
export type Inflated =
  | { readonly kind: "message"; readonly payload: Buffer }
  /** Larger than allowed: neither it nor, with context takeover, anything after it can be read. */
  | { readonly kind: "too-large" }
  | { readonly kind: "invalid"; readonly message: string };

/** Bytes that a sender removes from the end of each message (RFC 7692, 7.2.1). */
const TAIL = Buffer.from([0, 0, 0xff, 0xff]);
const WINDOW_BYTES = 32_768;

/** zlib's own default makes many small messages costly. */
const CHUNK_BYTES = 4096;
const LARGE_CHUNK_BYTES = 65_536;

/**
 * Decompresses the messages of one direction, RFC 7692, section 7.2.2. Each is decompressed at once, with the end of
 * those before as its dictionary, which is what context takeover means.
 */
export class MessageInflater {
  readonly #takesOver: boolean;
  readonly #maxBytes: number;
  #window: Buffer = Buffer.alloc(0);
  #isLost = false;

  /**
   * @param takesOver  messages may refer to those before
   * @param maxBytes  of one decompressed message
   */
  constructor(takesOver: boolean, maxBytes: number) {
    this.#takesOver = takesOver;
    this.#maxBytes = maxBytes;
  }

  /** A message was not kept whole: with context takeover, those after it cannot be read. */
  lose(): void {
    this.#isLost = this.#takesOver;
  }

  inflate(payload: Buffer): Inflated {
    if (this.#isLost) return { kind: "invalid", message: "An earlier message could not be decompressed" };
    try {
      const message = this.#run(Buffer.concat([payload, TAIL]));
      if (this.#takesOver) this.#remember(message);
      return { kind: "message", payload: message };
    } catch (error) {
      this.lose();
      const { code, message } = error as NodeJS.ErrnoException;
      if (code === "ERR_BUFFER_TOO_LARGE") return { kind: "too-large" };
      return { kind: "invalid", message: `A message cannot be decompressed: ${message}` };
    }
  }

  #run(input: Buffer): Buffer {
    const parts: Buffer[] = [];
    let rest = input;
    let window = this.#window;
    let room = this.#maxBytes;
    for (;;) {
      const { buffer, engine } = inflateRawSync(rest, {
        finishFlush: constants.Z_SYNC_FLUSH,
        maxOutputLength: Math.max(1, room),
        chunkSize: rest.length > CHUNK_BYTES ? LARGE_CHUNK_BYTES : CHUNK_BYTES,
        info: true,
        ...(window.length > 0 && { dictionary: window }),
      }) as unknown as { buffer: Buffer; engine: { bytesWritten: number } };
      if (buffer.length > room) throw Object.assign(new RangeError("too large"), { code: "ERR_BUFFER_TOO_LARGE" });
      parts.push(buffer);
      room -= buffer.length;
      // A block may say that it is the last one, and others may follow all the same (RFC 7692, 7.2.3.4).
      const used = engine.bytesWritten;
      if (used === 0 || rest.length - used <= TAIL.length) break;
      rest = rest.subarray(used);
      window = lastOf(window, buffer);
    }
    return parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts);
  }

  #remember(message: Buffer): void {
    this.#window = lastOf(this.#window, message);
  }
}

/** The end of two texts in a row that later messages can refer to. */
function lastOf(window: Buffer, message: Buffer): Buffer {
  if (message.length >= WINDOW_BYTES) return Buffer.from(message.subarray(message.length - WINDOW_BYTES));
  if (message.length === 0) return window;
  return Buffer.concat([window.subarray(Math.max(0, window.length + message.length - WINDOW_BYTES)), message]);
}

/** Compresses the messages of one direction, RFC 7692, section 7.2.1. */
export class MessageDeflater {
  readonly #takesOver: boolean;
  readonly #windowBits: number;
  #window: Buffer = Buffer.alloc(0);

  /**
   * @param takesOver  messages refer to those before
   * @param windowBits  8 to 15, as agreed
   */
  constructor(takesOver: boolean, windowBits: number) {
    this.#takesOver = takesOver;
    this.#windowBits = windowBits;
  }

  /** The payload to be sent in frames whose first one has RSV1 set. */
  deflate(message: Buffer): Buffer {
    // zlib cannot hold a raw stream to 256 bytes; stored blocks refer to nothing.
    const isStored = this.#windowBits === 8;
    const compressed = deflateRawSync(message, {
      finishFlush: constants.Z_SYNC_FLUSH,
      windowBits: Math.max(9, this.#windowBits),
      ...(isStored && { level: 0 }),
      ...(this.#window.length > 0 && !isStored && { dictionary: this.#window }),
    });
    if (this.#takesOver) {
      this.#window = Buffer.concat([this.#window, message]).subarray(-(1 << this.#windowBits));
    }
    // The tail that every reader adds again; an empty message is a single zero (7.2.3.6).
    return message.length === 0 ? Buffer.from([0]) : compressed.subarray(0, compressed.length - 4);
  }
}
