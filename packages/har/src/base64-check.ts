/** What is said of a body whose text should be base64 and is not. */
export const NOT_BASE64 = "holds a body that is not base64";

/**
 * Whether a text that comes in parts is base64 as programs write it: of either alphabet, broken into lines or not, with its
 * padding or without. Decoders pass over everything else, and give bytes that were never there.
 */
export class Base64Check {
  #digits = 0;
  #padding = 0;

  /** Takes the next part. False: what came so far begins no base64. */
  add(part: string): boolean {
    const text = part.replaceAll(/[\t\n\r ]+/gu, "");
    const end = text.search(/[^A-Za-z0-9+/_-]/u);
    const digits = end === -1 ? text.length : end;
    if ((digits > 0 && this.#padding > 0) || /[^=]/u.test(text.slice(digits))) return false;
    this.#digits += digits;
    this.#padding += text.length - digits;
    return true;
  }

  /** What came so far is base64 if no more parts come. */
  get isWhole(): boolean {
    const rest = this.#digits % 4;
    return rest !== 1 && (this.#padding === 0 || (rest > 0 && this.#padding === 4 - rest));
  }
}

/** The same of a text that is there at once. */
export function isBase64Text(text: string): boolean {
  const check = new Base64Check();
  return check.add(text) && check.isWhole;
}
