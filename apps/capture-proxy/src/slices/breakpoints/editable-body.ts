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

/** A body prepared for editing. */
export interface EditableBody {
  /** `coded`: a content coding could not be removed, so `bytes` are as transferred. */
  readonly form: "decoded" | "coded";
  readonly bytes: Uint8Array;
  /** Undefined for binary content. */
  readonly text: EditableText | undefined;
}

/** Text of a body and what is needed to encode it to the same bytes. */
export interface EditableText {
  readonly value: string;
  readonly charset: string;
  /** The charset of Content-Type; a byte order mark has precedence. */
  readonly declaredCharset: string | undefined;
  readonly hasMark: boolean;
}

/** Removes content coding and charset by the message's fields, up to `maxBytes`. */
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
  // Any bytes are valid in the fallback charset, so that one counts only for a textual type.
  const isText = charset === "utf-8" || source !== "assumed" || (mediaType !== undefined && isTextual(mediaType));
  if (!isText || text.includes("\0")) return undefined;
  const back = encodeText(text, charset);
  const hasMark = source === "bom";
  // Decoding must round-trip: a truncated character would be lost, and some charsets encode a character twice.
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
 * Encodes text in the charset of the edited fields, else in the original one. Text that this charset cannot represent
 * becomes UTF-8 with Content-Type updated. Changes `fields`.
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

/** Content codings in the order in which they were applied. */
export function codingsOf(fields: Readonly<RawFields>): string[] {
  return parseContentEncoding(fieldValues(fields, "content-encoding"));
}

/** Applies the content codings of the fields; if one is unsupported, removes all of them from `fields`. */
export async function encodeBody(plain: Uint8Array, fields: RawFields): Promise<Buffer> {
  const bytes = Buffer.from(plain.buffer, plain.byteOffset, plain.byteLength);
  if (bytes.length === 0) return bytes;
  const coded = await encodeContent(bytes, fieldValues(fields, "content-encoding"));
  if (coded === undefined) removeField(fields, "content-encoding");
  return coded ?? bytes;
}
