import { gzipSync } from "node:zlib";
import { sampleExchange } from "../../apps/capture-proxy/src/storage/read/sample-exchange.ts";
import type { StoreRig } from "../../apps/capture-proxy/src/storage/store-rig.ts";

/** The content of the store. */
export interface TextStorePlan {
  readonly entries: number;
  /** Each n-th entry has a text body in its response. */
  readonly bodyEvery: number;
  readonly bodyBytes: number;
  /** Bodies are stored with gzip, like most of the web's. */
  readonly gzip: boolean;
}

/** Deterministic random numbers. */
function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 4_294_967_296;
  };
}

/** Letters roughly as frequent as in English; a few words make up most of a text. */
function vocabulary(random: () => number): string[] {
  const letters =
    "eeeeeeeeeeeetttttttttaaaaaaaaooooooooiiiiiiinnnnnnnsssssshhhhhhrrrrrrddddllllcccuuummmwwffggyyppbbvkjxqz";
  return Array.from({ length: 20_000 }, () =>
    Array.from({ length: 2 + Math.floor(random() * 9) }, () => letters[Math.floor(random() * letters.length)]).join(""),
  );
}

/** Fills a store with entries like a shop's front end: JSON and HTML with identifiers, tokens and words. */
export async function fillWithTexts(rig: StoreRig, plan: TextStorePlan): Promise<void> {
  const random = randomNumbers(7);
  const words = vocabulary(random);
  const word = (): string => words[Math.floor(words.length * random() ** 3)] ?? "";
  const hex = (digits: number): string =>
    Array.from({ length: digits }, () => Math.floor(random() * 16).toString(16)).join("");
  const json = (): string =>
    `{"id":"${hex(24)}","name":"${word()} ${word()}","price":${Math.floor(random() * 99_999)},"tags":["${word()}","${word()}"],"text":"${Array.from({ length: 20 }, word).join(" ")}"},`;
  const html = (): string =>
    `<div class="${word()}-item" data-id="${hex(8)}"><a href="/p/${word()}/${hex(6)}">${Array.from({ length: 15 }, word).join(" ")}</a></div>\n`;
  for (let index = 0; index < plan.entries; index += 1) {
    const hasBody = index % plan.bodyEvery < 1;
    const isJson = random() < 0.5;
    let body = "";
    while (hasBody && body.length < plan.bodyBytes) body += isJson ? json() : html();
    const bytes = Buffer.from(body.slice(0, plan.bodyBytes));
    rig.store.record(
      rig.store.nextSeq(),
      sampleExchange({
        spool: rig.store.spool,
        host: `host${index % 200}.example.com`,
        path: `/api/v1/${word()}/${index}?page=${index % 50}&token=${hex(12)}`,
        requestFields: [
          "Host",
          `host${index % 200}.example.com`,
          "User-Agent",
          "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
          "Accept",
          "application/json, text/html;q=0.9",
          "Accept-Encoding",
          "gzip, br",
          "Accept-Language",
          "en-US,en;q=0.5",
          "Cookie",
          `sid=${hex(32)}; theme=dark`,
          "X-Request-Id",
          hex(16),
        ],
        responseFields: [
          "Content-Type",
          isJson ? "application/json" : "text/html; charset=utf-8",
          "Cache-Control",
          "max-age=0, private, must-revalidate",
          "Date",
          "Fri, 21 Nov 2025 10:00:00 GMT",
          "ETag",
          `W/"${hex(16)}"`,
          "Strict-Transport-Security",
          "max-age=31536000",
          "Server",
          "nginx",
          ...(plan.gzip && hasBody ? ["Content-Encoding", "gzip"] : []),
        ],
        responseBody: hasBody ? [plan.gzip ? gzipSync(bytes) : bytes] : [],
      }),
    );
    if (index % 500 === 0) while (rig.store.status().backlogEntries > 5000) await rig.store.flush();
  }
  await rig.store.flush();
}
