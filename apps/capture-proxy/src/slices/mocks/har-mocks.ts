import { fromHarEntry, HarDecoder, type HarExchange, HarFormatError, type HarItem } from "@headworks/har";
import { decodeContentSync, encodeAsDeclared } from "@headworks/http-fields/content-coding";
import { fieldValue } from "@headworks/http1";
import { isDeepStrictEqual } from "node:util";
import { exactly, isToken, responseOf } from "./captured-mock.ts";
import { ImportCollector, type ImportedMocks, ImportProblem } from "./imported-mocks.ts";
import { type MockDraft, plainDraft, responsesOf } from "./mock-rule.ts";
import { inOrder } from "./mocks.observer.ts";

const MAX_DECODED_BYTES = 16_777_216;

/**
 * Converts a HAR into rules while its bytes arrive. Responses to the same request become one rule with a sequence in
 * document order, because of several equal rules only the first would ever respond.
 */
export class HarMocks {
  readonly #decoder = new HarDecoder();
  readonly #collector = new ImportCollector();
  readonly #byRequest = new Map<string, MockDraft>();

  /** Returns the number of entries so far. Throws {@link ImportProblem}. */
  write(chunk: Uint8Array): number {
    try {
      for (const item of this.#decoder.write(chunk)) this.#add(item);
    } catch (error) {
      throw problemOf(error);
    }
    return this.#decoder.entryCount;
  }

  /** Ends the input. Throws {@link ImportProblem} for input that is not a HAR. */
  end(): ImportedMocks {
    try {
      this.#decoder.end();
    } catch (error) {
      throw problemOf(error);
    }
    return this.#collector.done();
  }

  #add(item: HarItem): void {
    if (item.kind === "refused") return this.#collector.skip(item.message);
    const url = item.entry.request.url.slice(0, 200);
    const warn = (what: string): void => this.#collector.warn(`entry ${item.index} (${url}): ${what}`);
    item.leftOut.forEach(warn);
    let problem: string | undefined;
    try {
      problem = this.#take(fromHarEntry(item.entry), warn);
    } catch (error) {
      if (error instanceof ImportProblem) throw error;
      problem = error instanceof Error ? error.message : String(error);
    }
    if (problem !== undefined) this.#collector.skip(`entry ${item.index} (${url}): ${problem}`);
    return undefined;
  }

  /** Returns why no rule was made. Throws a string for a large body that is invalid. */
  #take({ request, response }: HarExchange, warn: (what: string) => void): string | undefined {
    if (response === undefined) return "it has no response";
    if (response.status < 200 || response.status > 599) return `status ${response.status} cannot be mocked`;
    const made = mockResponseOf(response, request.method);
    if (typeof made === "string") return made;
    for (const sentence of lossesOf(response)) warn(sentence);
    const key = `${request.method} ${request.url}`;
    const known = this.#byRequest.get(key);
    if (known === undefined) {
      this.#collector.add(`HAR: ${key}`, exactly(request.method, request.url), made);
      const added = this.#collector.last;
      this.#byRequest.set(key, added ?? plainDraft(key, { type: "all" }, { type: "single", response: made }));
      return undefined;
    }
    const responses = responsesOf(known.responseConfig);
    if (isDeepStrictEqual(responses.at(-1), made)) return undefined;
    if (responses.length >= 100) return "there are already 100 responses to this request";
    const longer = { ...known, responseConfig: inOrder([...responses, made]) };
    this.#collector.replaceLast(known, longer);
    this.#byRequest.set(key, longer);
    return undefined;
  }
}

function lossesOf({ fields, body, missingBodyBytes }: NonNullable<HarExchange["response"]>): readonly string[] {
  const losses: string[] = [];
  if (missingBodyBytes !== undefined) {
    losses.push(`the document does not have its body of ${missingBodyBytes} bytes, so the rule has none`);
  }
  if (body?.isTruncated === true) losses.push("the document and the rule have only the beginning of its body");
  const names = fields.filter((text, at) => at % 2 === 0 && !isToken(text));
  if (names.length > 0) {
    losses.push(
      `these header fields of its response are left out, since their names are invalid: ${names.map((name) => JSON.stringify(name.slice(0, 100))).join(", ")}`,
    );
  }
  return losses;
}

function mockResponseOf(response: NonNullable<HarExchange["response"]>, method: string): ReturnType<typeof responseOf> {
  const fields: [string, string][] = [];
  for (let at = 0; at < response.fields.length; at += 2) {
    fields.push([response.fields[at] ?? "", response.fields[at + 1] ?? ""]);
  }
  const codings = fields.filter(([name]) => name.toLowerCase() === "content-encoding").map(([, value]) => value);
  let bytes: Buffer = Buffer.from(response.body?.bytes ?? []);
  if (response.body?.isEncoded === true && codings.length > 0) {
    const decoded = decodeContentSync(bytes, codings, { maxBytes: MAX_DECODED_BYTES });
    if (decoded.stop !== undefined && decoded.remaining.length === 0) return "its body cannot be decoded";
    bytes = Buffer.from(decoded.bytes);
  }
  if (response.body?.isText === true) {
    bytes = encodeAsDeclared(bytes.toString("utf8"), fieldValue(response.fields, "content-type"));
  }
  const plain = fields.filter(([name]) => name.toLowerCase() !== "content-encoding");
  return responseOf(response.status, plain, bytes, method);
}

function problemOf(error: unknown): unknown {
  return error instanceof HarFormatError ? new ImportProblem(error.message, { cause: error }) : error;
}
