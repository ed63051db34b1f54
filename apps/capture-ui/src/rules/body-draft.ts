/** A body in an editor: text, or base64 for binary data. */
export interface BodyDraft {
  readonly encoding: "utf8" | "base64";
  readonly text: string;
}

const MARK = "base64:";

export function bodyDraft(body: string | null, encoding: "utf8" | "base64" | null): BodyDraft {
  if (body === null) return { encoding: "utf8", text: "" };
  if (encoding === "base64") return { encoding, text: body.startsWith(MARK) ? body.slice(MARK.length) : body };
  return { encoding: "utf8", text: body };
}

/** Whether text is standard base64, ignoring blanks and line ends. */
export function isBase64(text: string): boolean {
  const bare = text.replaceAll(/\s+/gu, "");
  return bare.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/u.test(bare);
}

/** Bytes of a draft; null for incomplete base64. */
export function draftBytes({ encoding, text }: BodyDraft): Uint8Array<ArrayBuffer> | null {
  if (encoding === "utf8") return new TextEncoder().encode(text);
  if (!isBase64(text)) return null;
  return Uint8Array.from(atob(text.replaceAll(/\s+/gu, "")), (char) => char.charCodeAt(0));
}

/** The draft of bytes: text where they are UTF-8 without control characters, base64 otherwise. */
export function draftOfBytes(bytes: Uint8Array): BodyDraft {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    if (!/[\u0000-\u0008\u000e-\u001f]/u.test(text)) return { encoding: "utf8", text };
  } catch {
    // Not UTF-8.
  }
  let binary = "";
  for (let at = 0; at < bytes.length; at += 8192) binary += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return { encoding: "base64", text: btoa(binary) };
}

/** The body in the API's single-field form, with a mark for base64. */
export function markedBody({ encoding, text }: BodyDraft): string {
  return encoding === "utf8" ? text : MARK + text.replaceAll(/\s+/gu, "");
}
