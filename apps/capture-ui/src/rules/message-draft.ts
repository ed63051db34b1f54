/** A header in an editor; `key` identifies it across moves. */
export interface HeaderDraft {
  readonly key: number;
  readonly name: string;
  readonly value: string;
}

let lastKey = 0;

export function headerDraft(name = "", value = ""): HeaderDraft {
  lastKey += 1;
  return { key: lastKey, name, value };
}

/** Drafts of headers in order, including duplicates. */
export function headerDrafts(list: readonly (readonly [string, string])[]): readonly HeaderDraft[] {
  return list.map(([name, value]) => headerDraft(name, value));
}

/** The headers of drafts with a name. */
export function headersList(drafts: readonly HeaderDraft[]): [string, string][] {
  return drafts.flatMap(({ name, value }): [string, string][] => (name.trim() === "" ? [] : [[name.trim(), value]]));
}

/** Moves a header by `by` positions, limited to the ends of the list. */
export function movedHeader(drafts: readonly HeaderDraft[], key: number, by: number): readonly HeaderDraft[] {
  const from = drafts.findIndex((draft) => draft.key === key);
  const moved = drafts[from];
  const to = from + by;
  if (moved === undefined || to < 0 || to >= drafts.length) return drafts;
  return drafts.toSpliced(from, 1).toSpliced(to, 0, moved);
}

/** Headers by name, as mocks store them; repeated names have a list of values. */
export function headersRecord(drafts: readonly HeaderDraft[]): Record<string, string | string[]> {
  const record: Record<string, string | string[]> = {};
  const spelling = new Map<string, string>();
  for (const [name, value] of headersList(drafts)) {
    const known = spelling.get(name.toLowerCase());
    const before = known === undefined ? undefined : record[known];
    if (known === undefined || before === undefined) {
      spelling.set(name.toLowerCase(), name);
      record[name] = value;
    } else {
      record[known] = [...(Array.isArray(before) ? before : [before]), value];
    }
  }
  return record;
}

export function recordDrafts(record: Readonly<Record<string, string | readonly string[]>>): readonly HeaderDraft[] {
  return Object.entries(record).flatMap(([name, value]) =>
    (typeof value === "string" ? [value] : value).map((one) => headerDraft(name, one)),
  );
}

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
