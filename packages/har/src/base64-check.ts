/** Message about a body that should be base64 but is not. */
export const NOT_BASE64 = "holds a body that is not base64";

/**
 * Incremental check of base64: either alphabet, with or without line breaks and padding. Decoders skip invalid
 * characters and return wrong bytes.
 */
export class Base64Check {
  #digits = 0;
  #padding = 0;

  /** Returns false if the text so far cannot be base64. */
  add(part: string): boolean {
    const text = part.replaceAll(/[\t\n\r ]+/gu, "");
    const end = text.search(/[^A-Za-z0-9+/_-]/u);
    const digits = end === -1 ? text.length : end;
    if ((digits > 0 && this.#padding > 0) || /[^=]/u.test(text.slice(digits))) return false;
    this.#digits += digits;
    this.#padding += text.length - digits;
    return true;
  }

  /** Whether the text so far is complete base64. */
  get isWhole(): boolean {
    const rest = this.#digits % 4;
    return rest !== 1 && (this.#padding === 0 || (rest > 0 && this.#padding === 4 - rest));
  }
}

export function isBase64Text(text: string): boolean {
  const check = new Base64Check();
  return check.add(text) && check.isWhole;
}
