import { readJson } from "@headworks/json";
import { isTextual, parseQuery, decodeText } from "@headworks/http-fields";
import { decodeContent, type DecodedContent } from "@headworks/http-fields/content-coding";
import { fieldValue, fieldValues, hasField, type RawFields } from "@headworks/http1";
import { type BodyText, NOT_READ } from "@headworks/match-condition";
import type { RequestMessage } from "#exchange/exchange.ts";
import { ExchangeSubject } from "#rules/exchange-subject.ts";
import type { TemplateRequest } from "./template.ts";

/** Larger decoded bodies are treated as absent. */
const MAX_DECODED_BYTES = 16_777_216;

/** The subject of conditions and templates. The body is available after `readBody`. */
export class RequestSubject extends ExchangeSubject implements TemplateRequest {
  readonly #fields: Readonly<RawFields>;
  #body: BodyText = NOT_READ;
  #json: { readonly value: unknown } | undefined;

  constructor(request: Readonly<RequestMessage>) {
    super({ request, response: undefined }, "request");
    this.#fields = request.fields;
    const isFramed = hasField(request.fields, "content-length") || hasField(request.fields, "transfer-encoding");
    if (!isFramed && request.version !== "HTTP/2") this.#body = undefined;
  }

  get isBodyUnread(): boolean {
    return this.#body === NOT_READ;
  }

  /** Takes the whole content-coded body; undefined when it is unavailable. */
  async readBody(bytes: Uint8Array | undefined): Promise<void> {
    this.#body = bytes === undefined || bytes.length === 0 ? undefined : await this.#decoded(bytes);
  }

  async #decoded(bytes: Uint8Array): Promise<string | undefined> {
    const coding = fieldValues(this.#fields, "content-encoding");
    const decoded =
      coding.length === 0 ? bytes : await decodeContent(bytes, coding, { maxBytes: MAX_DECODED_BYTES }).then(whole);
    if (decoded === undefined) return undefined;
    const type = fieldValue(this.#fields, "content-type");
    // Bodies without a type are mostly JSON sent by hand.
    const { text, isDamaged } = decodeText(decoded, type);
    return isDamaged && !isTextual(type) ? undefined : text;
  }

  override requestText(): BodyText {
    return this.#body;
  }

  header(name: string): string | undefined {
    return fieldValue(this.#fields, name.toLowerCase());
  }

  queryParameter(name: string): string | undefined {
    return parseQuery(`?${this.query}`).find((parameter) => parameter.name === name)?.value;
  }

  text(): string {
    return typeof this.#body === "string" ? this.#body : "";
  }

  json(): unknown {
    if (this.#json === undefined) {
      let value: unknown;
      try {
        value = readJson(this.text());
      } catch {
        value = undefined;
      }
      this.#json = { value };
    }
    return this.#json.value;
  }
}

/** The decoded bytes, or the original ones on failure; undefined for a body that is too large. */
function whole({ bytes, stop }: DecodedContent): Uint8Array | undefined {
  return stop === "limit" ? undefined : bytes;
}
