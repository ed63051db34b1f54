/** A body in an editor: as text, or as base64 where its bytes are no text. */
export interface BodyDraft {
  readonly encoding: "utf8" | "base64";
  readonly text: string;
}

const MARK = "base64:";

/** The draft of a body as the API shows it. */
export function bodyDraft(body: string | null, encoding: "utf8" | "base64" | null): BodyDraft {
  if (body === null) return { encoding: "utf8", text: "" };
  if (encoding === "base64") return { encoding, text: body.startsWith(MARK) ? body.slice(MARK.length) : body };
  return { encoding: "utf8", text: body };
}

/** Whether text is standard base64, blanks and line ends left aside. */
export function isBase64(text: string): boolean {
  const bare = text.replaceAll(/\s+/gu, "");
  return bare.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/u.test(bare);
}

/** Bytes of a draft; null while base64 is half written. */
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

/** The body as the API takes it where one text field has to say both. */
export function markedBody({ encoding, text }: BodyDraft): string {
  return encoding === "utf8" ? text : MARK + text.replaceAll(/\s+/gu, "");
}
