import { createRequire } from "node:module";
import { RequestReader, requestHeadText, ResponseReader, responseHeadText, type RawFields } from "@headworks/http1";

/**
 * Prints CPU microseconds per message head: this codec compared to Node's parser, with the minimum of callbacks
 * that yields the same facts. Rounds alternate between the two, and the minimum counts.
 *
 * Usage: node bench/http1/heads.ts [messages per round] [rounds]
 */
const messages = Number(process.argv[2] ?? 20_000);
const rounds = Number(process.argv[3] ?? 9);

interface NativeParser {
  [callback: number]: unknown;
  initialize(kind: number, resource: object): void;
  execute(chunk: Buffer): number | Error;
}
interface NativeParserClass {
  new (): NativeParser;
  readonly REQUEST: number;
  readonly RESPONSE: number;
  readonly kOnHeaders: number;
  readonly kOnHeadersComplete: number;
  readonly kOnMessageComplete: number;
}
const native = createRequire(import.meta.url)("_http_common") as { HTTPParser: NativeParserClass };

const COMMON: readonly (readonly [string, string])[] = [
  ["Host", "www.example.com"],
  [
    "User-Agent",
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
  ],
  ["Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"],
  ["Accept-Encoding", "gzip, deflate, br, zstd"],
  ["Connection", "keep-alive"],
  ["Accept-Language", "en-GB,en;q=0.9,de;q=0.8"],
  ["Cache-Control", "no-cache"],
  ["Cookie", "session=8f14e45fceea167a5a36dedd4bea2543; theme=dark; consent=1; _ga=GA1.2.1234567890.1700000000"],
  ["Referer", "https://www.example.com/shop/items?page=2"],
  ["Sec-Fetch-Dest", "document"],
  ["Sec-Fetch-Mode", "navigate"],
  ["Sec-Fetch-Site", "same-origin"],
];

function fieldsOf(count: number): RawFields {
  const fields: RawFields = [];
  for (let index = 0; index < count; index++) {
    const [name, value] = COMMON[index] ?? [`X-Custom-Field-${index}`, `value-${index}-abcdefghij`];
    fields.push(name, value);
  }
  return fields;
}

const NOTHING = { onHead() {}, onData() {}, onEnd() {}, onError() {}, onInformational() {} };

function ownRequests(input: Buffer): () => void {
  let heads = 0;
  const reader = new RequestReader({ ...NOTHING, onHead: () => void heads++ });
  return () => {
    for (let sent = 0; sent < messages; sent++) {
      reader.read(input);
      reader.next();
    }
    if (heads % messages !== 0) throw new Error("not every head was read");
  };
}

function ownResponses(input: Buffer, lenient: boolean): () => void {
  let heads = 0;
  const reader = new ResponseReader({ ...NOTHING, onHead: () => void heads++ }, { lenient });
  return () => {
    for (let sent = 0; sent < messages; sent++) {
      reader.expect("GET");
      reader.read(input);
    }
    if (heads % messages !== 0) throw new Error("not every head was read");
  };
}

function nativeParser(kind: "REQUEST" | "RESPONSE", input: Buffer): () => void {
  const { HTTPParser } = native;
  const parser = new HTTPParser();
  let heads = 0;
  parser.initialize(HTTPParser[kind], {});
  parser[HTTPParser.kOnHeaders] = () => {};
  parser[HTTPParser.kOnHeadersComplete] = () => {
    heads++;
    return 0;
  };
  parser[HTTPParser.kOnMessageComplete] = () => {};
  return () => {
    for (let sent = 0; sent < messages; sent++) parser.execute(input);
    if (heads % messages !== 0) throw new Error("not every head was read");
  };
}

function cpuPerMessage(run: () => void): number {
  const before = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / messages;
}

function compare(title: string, own: () => void, other: () => void): void {
  let ownBest = Number.POSITIVE_INFINITY;
  let otherBest = Number.POSITIVE_INFINITY;
  for (let round = 0; round < rounds; round++) {
    ownBest = Math.min(ownBest, cpuPerMessage(own));
    otherBest = Math.min(otherBest, cpuPerMessage(other));
  }
  const cells = [ownBest.toFixed(2), otherBest.toFixed(2), (otherBest / ownBest).toFixed(2)];
  console.log(title.padEnd(34), cells.map((cell) => cell.padStart(9)).join(""));
}

console.log(
  "CPU microseconds per head".padEnd(34),
  ["own", "llhttp", "ratio"].map((cell) => cell.padStart(9)).join(""),
);
for (const count of [5, 12, 30]) {
  const request = Buffer.from(requestHeadText("GET", "/shop/items?page=3", fieldsOf(count)), "latin1");
  compare(`request, ${count} fields, ${request.length} B`, ownRequests(request), nativeParser("REQUEST", request));
  const fields = [...fieldsOf(count - 1), "Content-Length", "0"];
  const response = Buffer.from(responseHeadText(200, "OK", fields), "latin1");
  const nativeResponses = nativeParser("RESPONSE", response);
  compare(`response, ${count} fields, ${response.length} B`, ownResponses(response, false), nativeResponses);
  compare(`response, lenient, ${count} fields`, ownResponses(response, true), nativeResponses);
}
for (const count of [5, 12, 30]) {
  const fields = fieldsOf(count);
  const write = (): void => {
    let size = 0;
    for (let sent = 0; sent < messages; sent++) size += requestHeadText("GET", "/shop/items?page=3", fields).length;
    if (size === 0) throw new Error("nothing was written");
  };
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < rounds; round++) best = Math.min(best, cpuPerMessage(write));
  console.log(`written request, ${count} fields`.padEnd(34), best.toFixed(2).padStart(9));
}
