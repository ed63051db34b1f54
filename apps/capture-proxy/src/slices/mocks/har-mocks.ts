// Tested by import-documents.test.ts
import { fromHarEntry, readHarEntry } from "@headworks/har";
import type { HarExchange } from "@headworks/har";
import { decodeContentSync } from "@headworks/http-fields/content-coding";
import { isDeepStrictEqual } from "node:util";
import { exactly, responseOf } from "./captured-mock.ts";
import { ImportCollector, ImportProblem, member, membersOf } from "./imported-mocks.ts";
import type { ImportedMocks } from "./imported-mocks.ts";
import { answersOf, plainDraft } from "./mock-rule.ts";
import type { MockDraft } from "./mock-rule.ts";
import { inOrder } from "./mocks.observer.ts";

const LARGEST_DECODED_BYTES = 16_777_216;

/**
 * A rule for each answered request of a HAR; several answers to the same request become one rule that gives them in the
 * order of the document, because only the first of several equal rules would ever answer.
 */
export function harMocks(document: unknown): ImportedMocks {
  const entries = member(membersOf(member(membersOf(document), "log")), "entries");
  if (!Array.isArray(entries)) throw new ImportProblem("The document has no log.entries, so it is no HAR");
  const collector = new ImportCollector();
  const byRequest = new Map<string, MockDraft>();
  for (const [index, value] of (entries as readonly unknown[]).entries()) {
    const reading = readHarEntry(value);
    if (!reading.ok) {
      collector.skip(`log.entries[${index}] ${reading.message}`);
      continue;
    }
    const exchange = fromHarEntry(reading.entry);
    const problem = take(collector, byRequest, exchange);
    const url = exchange.request.url.slice(0, 200);
    if (problem !== undefined) collector.skip(`log.entries[${index}] (${url}): ${problem}`);
  }
  return collector.done();
}

function take(
  collector: ImportCollector,
  byRequest: Map<string, MockDraft>,
  { request, response }: HarExchange,
): string | undefined {
  if (response === undefined) return "it has no answer";
  if (response.status < 200 || response.status > 599) return `a status ${response.status} cannot be given`;
  const fields: [string, string][] = [];
  for (let at = 0; at < response.fields.length; at += 2) {
    fields.push([response.fields[at] ?? "", response.fields[at + 1] ?? ""]);
  }
  const coding = fields.filter(([name]) => name.toLowerCase() === "content-encoding").map(([, value]) => value);
  let bytes = Buffer.from(response.body?.bytes ?? []);
  if (response.body?.isEncoded === true && coding.length > 0) {
    const decoded = decodeContentSync(bytes, coding, { maxBytes: LARGEST_DECODED_BYTES });
    if (decoded.stop !== undefined) return "its body cannot be decoded";
    bytes = Buffer.from(decoded.bytes);
  }
  const plain = fields.filter(([name]) => name.toLowerCase() !== "content-encoding");
  const made = responseOf(response.status, plain, bytes);
  if (typeof made === "string") return made;
  const key = `${request.method} ${request.url}`;
  const known = byRequest.get(key);
  if (known === undefined) {
    collector.add(`HAR: ${key}`, exactly(request.method, request.url), made);
    byRequest.set(key, collector.last ?? plainDraft(key, { type: "all" }, { type: "single", response: made }));
    return undefined;
  }
  const answers = answersOf(known.responseConfig);
  if (isDeepStrictEqual(answers.at(-1), made)) return undefined;
  if (answers.length >= 100) return "there are 100 answers to this request already";
  const longer = { ...known, responseConfig: inOrder([...answers, made]) };
  collector.replaceLast(known, longer);
  byRequest.set(key, longer);
  return undefined;
}
