import { fromHarEntry, HarDecoder, HarFormatError } from "@headworks/har";
import type { HarExchange, HarItem } from "@headworks/har";
import { decodeContentSync, encodeAsDeclared } from "@headworks/http-fields/content-coding";
import { fieldValue } from "@headworks/http1";
import { isDeepStrictEqual } from "node:util";
import { exactly, isToken, responseOf } from "./captured-mock.ts";
import { ImportCollector, ImportProblem } from "./imported-mocks.ts";
import type { ImportedMocks } from "./imported-mocks.ts";
import { responsesOf, plainDraft } from "./mock-rule.ts";
import type { MockDraft } from "./mock-rule.ts";
import { inOrder } from "./mocks.observer.ts";

const MAX_DECODED_BYTES = 16_777_216;

/**
 * A rule for each answered request of a HAR, made while its bytes come; several answers to the same request become one
 * rule that gives them in the order of the document, because only the first of several equal rules would ever answer.
 */
export class HarMocks {
  readonly #decoder = new HarDecoder();
  readonly #collector = new ImportCollector();
  readonly #byRequest = new Map<string, MockDraft>();

  /** Takes a chunk; gives the number of entries so far. Throws {@link ImportProblem}. */
  write(chunk: Uint8Array): number {
    try {
      for (const item of this.#decoder.write(chunk)) this.#add(item);
    } catch (error) {
      throw problemOf(error);
    }
    return this.#decoder.entryCount;
  }

  /** No more bytes come. Throws {@link ImportProblem} for what is no HAR. */
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

  /** Gives why there is no rule. Throws a sentence for a large body that is none. */
  #take({ request, response }: HarExchange, warn: (what: string) => void): string | undefined {
    if (response === undefined) return "it has no answer";
    if (response.status < 200 || response.status > 599) return `a status ${response.status} cannot be given`;
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
    if (responses.length >= 100) return "there are 100 answers to this request already";
    const longer = { ...known, responseConfig: inOrder([...responses, made]) };
    this.#collector.replaceLast(known, longer);
    this.#byRequest.set(key, longer);
    return undefined;
  }
}

/** What the response had and its rule does not give. */
function lossesOf({ fields, body, missingBodyBytes }: NonNullable<HarExchange["response"]>): readonly string[] {
  const losses: string[] = [];
  if (missingBodyBytes !== undefined) {
    losses.push(`the document does not have its body of ${missingBodyBytes} bytes, and the rule gives none`);
  }
  if (body?.isTruncated === true) losses.push("the document has only the beginning of its body, and so has the rule");
  const names = fields.filter((text, at) => at % 2 === 0 && !isToken(text));
  if (names.length > 0) {
    losses.push(
      `header fields of its response are left out, since these are no names: ${names.map((name) => JSON.stringify(name.slice(0, 100))).join(", ")}`,
    );
  }
  return losses;
}

/** The answer that gives a response again, or why there can be none. */
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
