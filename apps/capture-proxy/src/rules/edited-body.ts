import {
  parseContentEncoding,
  decodeContent,
  decodeContentSync,
  encodeContent,
  declaredCharset,
  encodeText,
  remainingCodings,
} from "@headworks/http-fields/content-coding";
import { fieldValue, fieldValues, type RawFields } from "@headworks/http1";
import type { Content } from "#exchange/exchange.ts";
import { withField, withoutField } from "./header-edit.ts";
import { readTextBody, type TextBody, withCharset, writeTextBody } from "./text-body.ts";

export interface OriginalBody {
  readonly noBodyReason: () => string | undefined;
  /** The reason, known from the head, why the existing body is not edited. */
  readonly obstacle: () => string | undefined;
  readonly isBodiless: () => boolean;
  readonly fields: () => Readonly<RawFields>;
  /** The whole body, content-coded; `late` when it did not end in time. */
  readonly content: (limitBytes: number) => Promise<Content | { readonly kind: "late" }>;
}

export interface FinishedBody {
  readonly bytes: Buffer;
  readonly fields: RawFields;
  readonly words: readonly string[];
}

/** Decoding takes less than a millisecond up to this size; larger bodies are decoded in a thread. */
const AT_ONCE_BYTES = 16_384;

/** Digests of the body (RFC 9530, RFC 1864, RFC 3230), invalid once it changes. */
const DIGESTS = ["Content-MD5", "Digest", "Content-Digest", "Repr-Digest"];

/** The body of a message, decoded once, changed by any number of rules and encoded once. */
export class EditedBody {
  readonly #source: OriginalBody;
  readonly #limitBytes: number;
  #loaded: Promise<void> | undefined;
  #content: Promise<Content | { readonly kind: "late" }> | undefined;
  /** Without content coding. */
  #bytes: Buffer | undefined;
  #obstacle: string | undefined;
  /** The body was too late or too large and is forwarded unchanged. */
  #isForwarded = false;
  #text: TextBody | undefined | "unknown" = "unknown";
  /** An edited text that is not encoded yet. */
  #editedText: string | undefined;
  #isChanged = false;
  /** Set by `replace`: the original's codings no longer matter. */
  #isReplaced = false;
  #newCharset: string | undefined;

  constructor(source: OriginalBody, limitBytes: number) {
    this.#source = source;
    this.#limitBytes = limitBytes;
  }

  get isChanged(): boolean {
    return this.#isChanged;
  }

  /** True when `load` has nothing left to do. */
  get isLoaded(): boolean {
    return this.#bytes !== undefined || this.obstacle !== undefined;
  }

  get obstacle(): string | undefined {
    if (this.#bytes !== undefined) return undefined;
    return this.#source.noBodyReason() ?? this.#source.obstacle() ?? this.#obstacle;
  }

  get noBodyReason(): string | undefined {
    return this.#source.noBodyReason();
  }

  /** True when the original is forwarded unchanged, unless the whole message is replaced. */
  get isForwarded(): boolean {
    return this.#isForwarded;
  }

  /** The current bytes without content coding; undefined with an obstacle. */
  get bytes(): Buffer | undefined {
    if (this.#editedText !== undefined) this.#writeText();
    return this.#bytes;
  }

  get text(): string | undefined {
    if (this.#editedText !== undefined) return this.#editedText;
    return this.#readText()?.text;
  }

  /** The text if it has a charset, undefined for binary content. */
  get exactText(): string | undefined {
    const { text } = this;
    const read = this.#readText();
    return read === undefined || read.charset === "octets" ? undefined : text;
  }

  /** The message has no body that could be read. */
  get isBodiless(): boolean {
    return this.#bytes === undefined && this.#source.isBodiless();
  }

  /** Waits for the body and decodes it. Never rejects; see `obstacle`. */
  load(): Promise<void> {
    if (this.isLoaded) return Promise.resolve();
    return (this.#loaded ??= this.#read());
  }

  async #read(): Promise<void> {
    const content = await this.#fetch();
    const limitBytes = this.#limitBytes;
    switch (content.kind) {
      case "complete":
        return await this.#decode(content.bytes);
      case "too-large":
        this.#obstacle = `the body is larger than ${limitBytes} bytes and is forwarded unchanged`;
        return;
      case "late":
        this.#obstacle = "the body did not end in time and is forwarded unchanged";
        return;
      case "gone":
        this.#obstacle = "the body is not available completely";
    }
  }

  /** Waits for the end of the original body, except for streams and bodies over the limit. */
  async settle(): Promise<void> {
    const isStream = this.#content === undefined && this.#source.obstacle() !== undefined && !this.#source.isBodiless();
    if (isStream) this.#isForwarded = true;
    else await this.#fetch();
  }

  async #fetch(): Promise<Content | { readonly kind: "late" }> {
    const content = await (this.#content ??= this.#source.content(this.#limitBytes));
    this.#isForwarded = content.kind !== "complete";
    return content;
  }

  async #decode(coded: Buffer): Promise<void> {
    const codings = fieldValues(this.#source.fields(), "content-encoding");
    const limits = { maxBytes: this.#limitBytes };
    const isSmall = coded.length <= AT_ONCE_BYTES;
    const decoded = isSmall ? decodeContentSync(coded, codings, limits) : await decodeContent(coded, codings, limits);
    if (decoded.stop === undefined) {
      this.#bytes = Buffer.from(decoded.bytes.buffer, decoded.bytes.byteOffset, decoded.bytes.byteLength);
      return;
    }
    this.#obstacle = {
      limit: `the decoded body is larger than ${this.#limitBytes} bytes and is forwarded unchanged`,
      truncated: "the body's content coding is truncated; it is forwarded unchanged",
      damaged: "the body is not in its declared content coding; it is forwarded unchanged",
      unsupported: `${remainingCodings(decoded.remaining)} cannot be decoded; the body is forwarded unchanged`,
    }[decoded.stop];
  }

  replaceText(text: string): void {
    this.#editedText = text;
    this.#isChanged = true;
  }

  /** The result of an edit in the thread; requires `load`. */
  replaceEdited(bytes: Buffer, newCharset: string | undefined): void {
    this.#bytes = bytes;
    this.#editedText = undefined;
    this.#text = "unknown";
    this.#isChanged = true;
    this.#newCharset = newCharset ?? this.#newCharset;
  }

  /** Replaces the body with bytes without content coding; requires `settle`. */
  replace(bytes: Buffer): void {
    this.#bytes = bytes;
    this.#editedText = undefined;
    this.#text = "unknown";
    this.#isChanged = true;
    this.#isReplaced = true;
  }

  /** Replaces the body with text in the charset of the message. */
  replaceByText(text: string): void {
    const charset = declaredCharset(fieldValue(this.#source.fields(), "content-type")) ?? "utf-8";
    const bytes = encodeText(text, charset);
    this.replace(bytes ?? Buffer.from(text, "utf8"));
    this.#newCharset = bytes === undefined ? "utf-8" : undefined;
  }

  #readText(): TextBody | undefined {
    if (this.#text === "unknown") {
      this.#text = this.#bytes === undefined ? undefined : readTextBody(this.#bytes, this.contentType);
    }
    return this.#text;
  }

  get contentType(): string | undefined {
    const contentType = fieldValue(this.#source.fields(), "content-type");
    return contentType === undefined || this.#newCharset === undefined
      ? contentType
      : withCharset(contentType, this.#newCharset);
  }

  #writeText(): void {
    const before = this.#readText();
    if (this.#editedText === undefined || before === undefined) return;
    const { bytes, newCharset } = writeTextBody(this.#editedText, before);
    this.#bytes = bytes;
    this.#text = { ...before, text: this.#editedText, charset: newCharset ?? before.charset };
    this.#editedText = undefined;
    this.#newCharset = newCharset ?? this.#newCharset;
  }

  /** Encodes the changed body as the current fields declare; returns it with its fields. */
  async finish(): Promise<FinishedBody> {
    const plain = this.bytes ?? Buffer.alloc(0);
    const words: string[] = [];
    let fields: RawFields = [...this.#source.fields()];
    const contentType = fieldValue(fields, "content-type");
    if (this.#newCharset !== undefined && contentType !== undefined) {
      fields = withField(fields, "Content-Type", withCharset(contentType, this.#newCharset), false);
      words.push(`charset ${this.#newCharset}, since the original charset cannot encode the text`);
    }
    const removed = DIGESTS.filter((name) => fieldValue(fields, name.toLowerCase()) !== undefined);
    for (const name of removed) ({ fields } = withoutField(fields, name));
    if (removed.length > 0) words.push(`removed ${removed.join(", ")} (no longer valid)`);
    const codings = fieldValues(fields, "content-encoding");
    if (parseContentEncoding(codings).length === 0) return { bytes: plain, fields, words };
    const coded = this.#isReplaced ? undefined : await encodeContent(plain, codings);
    if (coded !== undefined) return { bytes: coded, fields, words };
    ({ fields } = withoutField(fields, "Content-Encoding"));
    words.push(`sent without content coding instead of ${codings.join(", ")}`);
    return { bytes: plain, fields, words };
  }
}
