import {
  parseContentEncoding,
  decodeContent,
  decodeContentSync,
  encodeContent,
  declaredCharset,
  encodeText,
  remainingCodings,
} from "@headworks/http-fields/content-coding";
import { fieldValue, fieldValues } from "@headworks/http1";
import type { RawFields } from "@headworks/http1";
import type { Content } from "#exchange/exchange.ts";
import { withField, withoutField } from "./header-edit.ts";
import { readTextBody, withCharset, writeTextBody } from "./text-body.ts";
import type { TextBody } from "./text-body.ts";

/** Where a body comes from and goes to. */
export interface BodySource {
  /** Why this message cannot have a body; undefined when it can. */
  readonly noBody: () => string | undefined;
  /** Why its body is not edited though it has one, known from its head; undefined when it may be. */
  readonly obstacle: () => string | undefined;
  /** The message came without a body. */
  readonly isBodiless: () => boolean;
  readonly fields: () => Readonly<RawFields>;
  /** The whole body, content-coded; `late` when it did not end in time. */
  readonly content: (limitBytes: number) => Promise<Content | { readonly kind: "late" }>;
}

/** What is to be sent instead of what came. */
export interface FinishedBody {
  readonly bytes: Buffer;
  readonly fields: RawFields;
  /** What else had to change, in words. */
  readonly words: readonly string[];
}

/** Decoding takes less than a millisecond up to here; beyond it, another thread does it. */
const AT_ONCE_BYTES = 16_384;

/** Fields that state a digest of the body (RFC 9530, RFC 1864, RFC 3230): untrue as soon as it changes. */
const DIGESTS = ["Content-MD5", "Digest", "Content-Digest", "Repr-Digest"];

/** A body between codings: read once, changed by any number of rules, coded again once. */
export class EditedBody {
  readonly #source: BodySource;
  readonly #limitBytes: number;
  #loaded: Promise<void> | undefined;
  #content: Promise<Content | { readonly kind: "late" }> | undefined;
  /** Bytes without content coding. */
  #bytes: Buffer | undefined;
  #obstacle: string | undefined;
  /** It was waited for in vain and goes on as it comes. */
  #hasPassed = false;
  #text: TextBody | undefined | "unknown" = "unknown";
  /** An edited text that is not written as bytes yet. */
  #editedText: string | undefined;
  #isChanged = false;
  /** Set by `replace`: nobody needs the codings of what is gone. */
  #isReplaced = false;
  #newCharset: string | undefined;

  constructor(source: BodySource, limitBytes: number) {
    this.#source = source;
    this.#limitBytes = limitBytes;
  }

  get isChanged(): boolean {
    return this.#isChanged;
  }

  /** Whether `load` is done, or needs not be done. */
  get isLoaded(): boolean {
    return this.#bytes !== undefined || this.obstacle !== undefined;
  }

  /** Why there is nothing to edit; undefined when there is, or before `load`. */
  get obstacle(): string | undefined {
    if (this.#bytes !== undefined) return undefined;
    return this.#source.noBody() ?? this.#source.obstacle() ?? this.#obstacle;
  }

  /** Why a message gets no body; undefined when it may. */
  get noBody(): string | undefined {
    return this.#source.noBody();
  }

  /** What came was not, or could not be, waited for: it goes on as it comes unless the whole message is another one. */
  get hasPassed(): boolean {
    return this.#hasPassed;
  }

  /** Bytes without content coding, as they are now; undefined with an obstacle. */
  get bytes(): Buffer | undefined {
    if (this.#editedText !== undefined) this.#writeText();
    return this.#bytes;
  }

  /** The body as text; undefined when there is none. */
  get text(): string | undefined {
    if (this.#editedText !== undefined) return this.#editedText;
    return this.#readText()?.text;
  }

  /** Waits for the body and undoes its content codings. Never rejects; see `obstacle`. */
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
        this.#obstacle = `the body is larger than ${limitBytes} bytes and passes as it is`;
        return;
      case "late":
        this.#obstacle = "the body did not end in time and passes as it is";
        return;
      case "gone":
        this.#obstacle = "the body is not there as a whole";
    }
  }

  /**
   * Waits for the end of what came, because only then can another body take its place. Streams and what is too large are
   * not waited for; see `hasPassed`.
   */
  async settle(): Promise<void> {
    const isStream = this.#content === undefined && this.#source.obstacle() !== undefined && !this.#source.isBodiless();
    if (isStream) this.#hasPassed = true;
    else await this.#fetch();
  }

  async #fetch(): Promise<Content | { readonly kind: "late" }> {
    const content = await (this.#content ??= this.#source.content(this.#limitBytes));
    this.#hasPassed = content.kind !== "complete";
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
      limit: `the decoded body is larger than ${this.#limitBytes} bytes and passes as it is`,
      truncated: "the body's content coding ends too soon; it passes as it is",
      damaged: "the body is not of the content coding it names; it passes as it is",
      unsupported: `${remainingCodings(decoded.remaining)} cannot be undone; the body passes as it is`,
    }[decoded.stop];
  }

  /** Another text, after `load`. */
  replaceText(text: string): void {
    this.#editedText = text;
    this.#isChanged = true;
  }

  /** The body as it was edited elsewhere, after `load`. */
  replaceEdited(bytes: Buffer, newCharset: string | undefined): void {
    this.#bytes = bytes;
    this.#editedText = undefined;
    this.#text = "unknown";
    this.#isChanged = true;
    this.#newCharset = newCharset ?? this.#newCharset;
  }

  /** Another body altogether, without content coding; after `settle`. */
  replace(bytes: Buffer): void {
    this.#bytes = bytes;
    this.#editedText = undefined;
    this.#text = "unknown";
    this.#isChanged = true;
    this.#isReplaced = true;
  }

  /** The same as text, in the charset of the message. */
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

  /** With the charset that the text got meanwhile. */
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

  /** The changed body coded as the message's fields say now, with the fields that go with it. */
  async finish(): Promise<FinishedBody> {
    const plain = this.bytes ?? Buffer.alloc(0);
    const words: string[] = [];
    let fields: RawFields = [...this.#source.fields()];
    const contentType = fieldValue(fields, "content-type");
    if (this.#newCharset !== undefined && contentType !== undefined) {
      fields = withField(fields, "Content-Type", withCharset(contentType, this.#newCharset), false);
      words.push(`charset ${this.#newCharset}, since the text does not fit the one before`);
    }
    const removed = DIGESTS.filter((name) => fieldValue(fields, name.toLowerCase()) !== undefined);
    for (const name of removed) ({ fields } = withoutField(fields, name));
    if (removed.length > 0) words.push(`removed ${removed.join(", ")}: no longer true`);
    const codings = fieldValues(fields, "content-encoding");
    if (parseContentEncoding(codings).length === 0) return { bytes: plain, fields, words };
    const coded = this.#isReplaced ? undefined : await encodeContent(plain, codings);
    if (coded !== undefined) return { bytes: coded, fields, words };
    ({ fields } = withoutField(fields, "Content-Encoding"));
    words.push(`sent without content coding instead of ${codings.join(", ")}`);
    return { bytes: plain, fields, words };
  }
}
