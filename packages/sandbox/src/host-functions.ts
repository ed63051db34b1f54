import { createHash, createHmac, randomUUID } from "node:crypto";
import type { JSValueHandle, QuickJS } from "quickjs-wasi";

const MAX_LINES = 200;
const MAX_LINE_LENGTH = 8192;
const MAX_LENGTH = 65_536;
const MAX_STORE_LENGTH = 1_048_576;

/** The output of one call, capped in lines and length. */
export class ConsoleLines {
  lines: string[] = [];
  #length = 0;

  clear(): void {
    this.lines = [];
    this.#length = 0;
  }

  add(level: string, text: string): void {
    if (this.#length > MAX_LENGTH || this.lines.length > MAX_LINES) return;
    const shown = text.length > MAX_LINE_LENGTH ? `${text.slice(0, MAX_LINE_LENGTH)}… (line cut)` : text;
    if (this.#length + shown.length > MAX_LENGTH || this.lines.length === MAX_LINES) {
      this.#length = MAX_LENGTH + 1;
      this.lines.push(`[warn] further output of this call was dropped (limits: ${MAX_LINES} lines, 64 KiB)`);
      return;
    }
    this.#length += shown.length;
    this.lines.push(level === "log" ? shown : `[${level}] ${shown}`);
  }
}

/** The host's side of a guest: an object with the only functions that reach outside of the interpreter. */
export function hostFunctions(
  vm: QuickJS,
  console: ConsoleLines,
  values: Map<string, string>,
  onValue: (key: string, value: string | null) => void,
): JSValueHandle {
  const host = vm.newObject();
  const add = (name: string, run: (...args: JSValueHandle[]) => JSValueHandle): void => {
    const made = vm.newFunction(name, (...args) => {
      try {
        return run(...args);
      } catch (error) {
        // The interpreter copies the stack, which names files of the host.
        if (error instanceof Error) error.stack = "";
        throw error;
      }
    });
    host.setProp(name, made);
    made.dispose();
  };
  const text = (value: string | undefined): JSValueHandle => (value === undefined ? vm.null : vm.newString(value));
  let storeLength = 0;
  for (const [key, value] of values) storeLength += key.length + value.length;
  add("log", (level, line) => {
    console.add(textOf(level), textOf(line));
    return vm.undefined;
  });
  add("hash", (algorithm, data) =>
    text(
      createHash(digestName(textOf(algorithm)))
        .update(dataOf(data))
        .digest("hex"),
    ),
  );
  add("hmac", (algorithm, key, data) =>
    text(
      createHmac(digestName(textOf(algorithm)), dataOf(key))
        .update(dataOf(data))
        .digest("hex"),
    ),
  );
  add("randomUUID", () => text(randomUUID()));
  add("encodeUtf8", (value) => vm.newUint8Array(Buffer.from(textOf(value), "utf8")));
  add("decodeUtf8", (data) => text(Buffer.from(dataOf(data)).toString("utf8")));
  add("encodeBase64", (data) => text(Buffer.from(dataOf(data)).toString("base64")));
  add("decodeBase64", (value) => vm.newUint8Array(Buffer.from(textOf(value), "base64")));
  add("storeGet", (key) => text(values.get(textOf(key))));
  add("storeKeys", () => text(JSON.stringify([...values.keys()])));
  add("storeSet", (keyHandle, valueHandle) => {
    const key = textOf(keyHandle);
    const value = textOf(valueHandle);
    const old = values.get(key);
    const length = storeLength + key.length + value.length - (old === undefined ? 0 : key.length + old.length);
    if (length > MAX_STORE_LENGTH) throw new RangeError("store: more than 1 MiB of keys and values");
    storeLength = length;
    values.set(key, value);
    onValue(key, value);
    return vm.undefined;
  });
  add("storeDelete", (keyHandle) => {
    const key = textOf(keyHandle);
    const old = values.get(key);
    if (old === undefined) return vm.undefined;
    storeLength -= key.length + old.length;
    values.delete(key);
    onValue(key, null);
    return vm.undefined;
  });
  return host;
}

const DIGESTS = ["md5", "sha1", "sha256", "sha384", "sha512"];

function digestName(name: string): string {
  const known = name.toLowerCase().replace("-", "");
  if (!DIGESTS.includes(known)) throw new RangeError(`crypto: ${name} is none of ${DIGESTS.join(", ")}`);
  return known;
}

/** The prelude passes strings and bytes only; anything else is a script that reached behind it. */
function textOf(handle: JSValueHandle | undefined): string {
  if (handle?.isString !== true) throw new TypeError("A string is expected");
  return stringOf(handle);
}

/** The interpreter could not allocate what crosses its border. */
export class OutOfGuestMemory extends Error {
  constructor() {
    super("out of memory");
  }
}

/** The text of a handle to a string. The library drops a byte order mark, and returns `<null>` without memory. */
export function stringOf(handle: JSValueHandle): string {
  const text = handle.toString();
  const { length } = handle;
  if (text.length === length) return text;
  if (text.length === length - 1) return `\ufeff${text}`;
  throw new OutOfGuestMemory();
}

function dataOf(handle: JSValueHandle | undefined): string | Uint8Array {
  if (handle === undefined) throw new TypeError("A string or bytes are expected");
  return handle.isString ? stringOf(handle) : handle.toUint8Array();
}
