import { isTextual, parseMediaType } from "@headworks/http-fields";
import {
  decodeContent,
  decodeText,
  encodeContent,
  declaredCharset,
  encodeText,
  parseContentEncoding,
} from "@headworks/http-fields/content-coding";
import { fieldValue, fieldValues, removeField, setField } from "@headworks/http1";
import type { RawFields } from "@headworks/http1";

/** A body as it is given to be edited. */
export interface EditableBody {
  /** `coded`: a content coding could not be undone, so the bytes are those of the wire. */
  readonly form: "decoded" | "coded";
  /** Without content coding where `form` says so. */
  readonly bytes: Uint8Array;
  /** Undefined for what is no text. */
  readonly text: EditableText | undefined;
}

/** A body's text, and what it takes to make the same bytes of it. */
export interface EditableText {
  readonly value: string;
  readonly charset: string;
  /** What Content-Type named; a byte order mark goes before it. */
  readonly declaredCharset: string | undefined;
  readonly hasMark: boolean;
}

/** Takes a body's content coding and charset away, as its fields tell; never more than `maxBytes` of it. */
export async function editableBody(
  content: Uint8Array,
  fields: Readonly<RawFields>,
  maxBytes: number,
): Promise<EditableBody> {
  const { bytes, stop } = await decodeContent(content, fieldValues(fields, "content-encoding"), { maxBytes });
  if (stop !== undefined) return { form: "coded", bytes: content, text: undefined };
  return { form: "decoded", bytes, text: textOf(bytes, fieldValue(fields, "content-type")) };
}

function textOf(bytes: Uint8Array, contentType: string | undefined): EditableText | undefined {
  const { text, charset, source, isDamaged } = decodeText(bytes, contentType);
  if (isDamaged) return undefined;
  const mediaType = parseMediaType(contentType);
  // Any bytes at all are valid in the charset that is assumed last; only a type that says text makes text of them.
  const isText = charset === "utf-8" || source !== "assumed" || (mediaType !== undefined && isTextual(mediaType));
  if (!isText || text.includes("\0")) return undefined;
  const back = encodeText(text, charset);
  const hasMark = source === "bom";
  // A character that was cut off at the end would get lost on the way back; some charsets have a character twice.
  if (back?.equals(bytes.subarray(hasMark ? markOf(charset).length : 0)) !== true) return undefined;
  return { value: text, charset, declaredCharset: declaredCharset(contentType), hasMark };
}

const MARKS: Readonly<Record<string, Buffer>> = {
  "utf-8": Buffer.of(0xef, 0xbb, 0xbf),
  "utf-16le": Buffer.of(0xff, 0xfe),
  "utf-16be": Buffer.of(0xfe, 0xff),
};

function markOf(charset: string): Buffer {
  return MARKS[charset] ?? Buffer.alloc(0);
}

/**
 * Text for the charset that the fields name since they were edited, else for the one it was decoded from. A text that this
 * charset cannot say becomes UTF-8, and Content-Type says so. Changes `fields`.
 */
export function encodeEditedText(text: string, fields: RawFields, before: EditableText | undefined): Buffer {
  const contentType = fieldValue(fields, "content-type");
  const declared = declaredCharset(contentType);
  const edited = declared === before?.declaredCharset ? undefined : declared;
  const charset = edited ?? before?.charset ?? declared ?? "utf-8";
  const encoded = encodeText(text, charset);
  if (encoded !== undefined) {
    return before?.hasMark === true && before.charset === charset ? Buffer.concat([markOf(charset), encoded]) : encoded;
  }
  if (contentType !== undefined) setField(fields, "Content-Type", withCharset(contentType, "utf-8"));
  return Buffer.from(text, "utf8");
}

function withCharset(contentType: string, charset: string): string {
  const declared = /;\s*charset\s*=\s*(?:"[^"]*"|[^;\s]*)/i;
  if (declared.test(contentType)) return contentType.replace(declared, `; charset=${charset}`);
  return `${contentType}; charset=${charset}`;
}

/** The content codings of a message, in the order they were applied. */
export function codingsOf(fields: Readonly<RawFields>): string[] {
  return parseContentEncoding(fieldValues(fields, "content-encoding"));
}

/** Applies the content codings that the fields name; where one of them cannot be written, all are removed from the fields. */
export async function encodeBody(plain: Uint8Array, fields: RawFields): Promise<Buffer> {
  const bytes = Buffer.from(plain.buffer, plain.byteOffset, plain.byteLength);
  if (bytes.length === 0) return bytes;
  const coded = await encodeContent(bytes, fieldValues(fields, "content-encoding"));
  if (coded === undefined) removeField(fields, "content-encoding");
  return coded ?? bytes;
}
