import { type BodyKind, detectBody, isTextKind, needsConversion } from "./body-format.ts";
import { printBraces } from "./brace-printer.ts";
import { JsonPrinter, type JsonProblem } from "./json-printer.ts";
import { TextLayer } from "./text-layer.ts";

const VOID = new Set("area base br col embed hr img input link meta param source track wbr".split(" "));

/** Elements whose content is printed verbatim. */
const VERBATIM = new Set(["script", "style", "pre", "textarea", "title"]);

/** Inline elements: no line break is put around them. */
const INLINE = new Set(
  "a abbr b bdi bdo br button cite code data dfn em i img input kbd label mark q s samp select small span strong sub sup time u var wbr".split(
    " ",
  ),
);

const MAX_INDENT = 40;

const TOKEN =
  /<!--[\s\S]*?(?:-->|$)|<!\[CDATA\[[\s\S]*?(?:\]\]>|$)|<[?!][^>]*>?|<\/?[A-Za-z_](?:[^>"']|"[^"]*"|'[^']*')*>?|[^<]+|</gu;

/** URL and declared properties of a body. */
export interface BodyLocation {
  /** URL of the decoded body, including a query. */
  readonly url: string;
  readonly contentType: string | null;
}

/** Loading progress of a body, sent on each change, at most about ten times a second. */
export interface BodyProgress {
  readonly kind: BodyKind;
  readonly type: string;
  readonly loadedBytes: number;
  readonly totalBytes: number | null;
  /** All wanted bytes have been received. */
  readonly done: boolean;
  readonly error: string | null;
  readonly rawRows: number;
  readonly prettyRows: number;
  readonly prettyBytes: number;
  /** The body exceeds the memory limit; text views lack the end. */
  readonly cut: boolean;
  readonly problem: JsonProblem | null;
  /** The content coding is damaged or truncated; only the decodable part is present. */
  readonly isBroken: boolean;
  /** The body does not match its declared content coding, or the coding is unknown; the bytes are as received. */
  readonly isAsSent: boolean;
  /** Number of layouts; rows fetched before the last one are stale. */
  readonly layout: number;
}

/** Size of the first range request: enough for one screen and for detecting the kind. */
const FIRST_BYTES = 262_144;
const RAW_LIMIT_BYTES = 128 * 1024 * 1024;
const PRETTY_LIMIT_BYTES = 256 * 1024 * 1024;
/** Markup, scripts and styles are laid out as whole strings; larger ones are shown as sent. */
const WHOLE_PRINT_LIMIT_BYTES = 4 * 1024 * 1024;
const REPORT_INTERVAL_MS = 100;
/** Bytes read before anything is shown: more rows than a screen has. */
const FIRST_SCREEN_BYTES = 32_768;
const PIECE_BYTES = 131_072;
/** Longest uninterrupted layout, so that row requests of the page are served in time. */
const WORK_SLICE_MS = 12;

interface Slice {
  /** The content coding is truncated or damaged: only the decodable bytes. */
  readonly isBroken: boolean;
  readonly isAsSent: boolean;
  readonly body: ReadableStream<Uint8Array> | null;
  readonly totalBytes: number | null;
  readonly isPartial: boolean;
}

/** A decoded body, fetched in ranges and held as bytes; runs in a worker. */
export class BodyDocument {
  readonly #source: BodyLocation;
  readonly #fetch: typeof fetch;
  readonly #report: (progress: BodyProgress) => void;
  readonly #stop = new AbortController();
  #kind: BodyKind = "empty";
  #type = "";
  #raw = new TextLayer(0, false);
  #pretty: TextLayer | null = null;
  #printer: JsonPrinter | null = null;
  #loaded = 0;
  #total: number | null = null;
  #done = false;
  #error: string | null = null;
  #reportedMs = -Infinity;
  /** Resolves to whether the beginning was loaded. */
  #beginning: Promise<boolean> = Promise.resolve(false);
  #whole: Promise<void> | null = null;
  /** Query part that requests conversion to UTF-8. */
  #query = "";
  #columns: number | null = null;
  #layout = 0;
  #isBroken = false;
  #isAsSent = false;
  #pausedMs = -Infinity;

  constructor(source: BodyLocation, report: (progress: BodyProgress) => void, fetchBody?: typeof fetch) {
    this.#source = source;
    this.#report = report;
    // A worker's `fetch` must not be called as a method of another object.
    this.#fetch = fetchBody ?? ((input, init) => fetch(input, init));
  }

  get kind(): BodyKind {
    return this.#kind;
  }

  get raw(): TextLayer {
    return this.#raw;
  }

  /** The formatted text; null for kinds without formatting. */
  get pretty(): TextLayer | null {
    return this.#pretty;
  }

  /** Loads the beginning, detects the kind, and continues for text kinds. */
  async open(): Promise<void> {
    this.#beginning = this.#loadBeginning();
    if (!(await this.#beginning)) return;
    if (isTextKind(this.#kind) || this.#kind === "multipart") await this.loadRest();
    else {
      this.#done = this.#hasAll();
      this.#send(true);
    }
  }

  /**
   * Resolves when all wanted bytes are loaded or loading failed; also loads kinds that are not loaded automatically.
   */
  loadRest(): Promise<void> {
    this.#whole ??= this.#loadWhole();
    return this.#whole;
  }

  /** Wraps lines at a width in characters; null disables wrapping. */
  wrapAt(columns: number | null): void {
    if (columns === this.#columns) return;
    this.#columns = columns;
    this.#raw.wrapAt(columns);
    this.#pretty?.wrapAt(columns);
    this.#layout++;
    this.#send(true);
  }

  close(): void {
    this.#stop.abort();
  }

  async #loadBeginning(): Promise<boolean> {
    try {
      let first = await this.#range(0, FIRST_BYTES);
      let beginning = await readAll(first.body);
      const detected = detectBody(this.#source.contentType, beginning);
      this.#kind = detected.kind;
      this.#type = detected.type;
      if (isTextKind(detected.kind) && needsConversion(this.#source.contentType, beginning)) {
        this.#query = "&charset=utf-8";
        first = await this.#range(0, FIRST_BYTES);
        beginning = await readAll(first.body);
      }
      this.#makeLayers();
      this.#isBroken = first.isBroken;
      this.#isAsSent = first.isAsSent;
      this.#total = first.totalBytes ?? beginning.length;
      await this.#takeAll(beginning);
      return true;
    } catch (error) {
      this.#fail(error);
      return false;
    }
  }

  #makeLayers(): void {
    const isJson = this.#kind === "json";
    this.#raw = this.#layer(RAW_LIMIT_BYTES, isJson);
    if (!isJson) return;
    const pretty = this.#layer(PRETTY_LIMIT_BYTES, true);
    this.#pretty = pretty;
    this.#printer = new JsonPrinter((bytes) => pretty.append(bytes));
  }

  #hasAll(): boolean {
    return this.#loaded >= (this.#total ?? 0);
  }

  async #loadWhole(): Promise<void> {
    if (!(await this.#beginning)) return;
    try {
      if (!this.#hasAll()) await this.#fetchRest();
      this.#printer?.finish();
      if (this.#printer === null) this.#printWhole();
      this.#done = true;
      this.#send(true);
    } catch (error) {
      this.#fail(error);
    }
  }

  async #fetchRest(): Promise<void> {
    const slice = await this.#range(this.#loaded, RAW_LIMIT_BYTES - this.#loaded);
    if (!slice.isPartial) throw new Error("Weir did not return the requested range");
    const reader = slice.body?.getReader();
    for (let part = await reader?.read(); part !== undefined && !part.done; part = await reader?.read()) {
      await this.#takeAll(part.value);
    }
  }

  #layer(limitBytes: number, isJson: boolean): TextLayer {
    const layer = new TextLayer(limitBytes, isJson);
    layer.wrapAt(this.#columns);
    return layer;
  }

  /** Processes a chunk in slices, serving row requests of the page in between. */
  async #takeAll(chunk: Uint8Array): Promise<void> {
    for (let at = 0; at < chunk.length && !this.#stop.signal.aborted;) {
      const isFirst = this.#loaded === 0;
      const piece = chunk.subarray(at, at + (isFirst ? FIRST_SCREEN_BYTES : PIECE_BYTES));
      this.#take(piece);
      at += piece.length;
      this.#send(isFirst);
      if (isFirst || performance.now() - this.#pausedMs > WORK_SLICE_MS) await this.#pause();
    }
  }

  async #pause(): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, 0));
    this.#pausedMs = performance.now();
  }

  #take(chunk: Uint8Array): void {
    this.#loaded += chunk.length;
    this.#raw.append(chunk);
    this.#printer?.push(chunk);
  }

  #printWhole(): void {
    const source = this.#raw.text(WHOLE_PRINT_LIMIT_BYTES);
    if (source === null) return;
    let printed: string;
    switch (this.#kind) {
      case "html":
        printed = printMarkup(source, "html");
        break;
      case "xml":
      case "svg":
        printed = printMarkup(source, "xml");
        break;
      case "css":
      case "javascript":
        printed = printBraces(source, this.#kind);
        break;
      default:
        return;
    }
    this.#pretty = this.#layer(PRETTY_LIMIT_BYTES, false);
    this.#pretty.append(new TextEncoder().encode(printed));
  }

  async #range(start: number, length: number): Promise<Slice> {
    const response = await this.#fetch(this.#source.url + this.#query, {
      headers: { range: `bytes=${start}-${start + length - 1}` },
      signal: this.#stop.signal,
    });
    const isBroken = response.headers.get("x-body-partial") === "true";
    const isAsSent = !isBroken && response.headers.get("x-body-undecodable") === "true";
    if (!response.ok) throw new Error(await failureText(response));
    const total = /\/(\d+)$/u.exec(response.headers.get("content-range") ?? "")?.[1];
    return {
      isBroken,
      isAsSent,
      body: response.body,
      totalBytes: total === undefined ? null : Number(total),
      isPartial: response.status === 206,
    };
  }

  #fail(error: unknown): void {
    if (this.#stop.signal.aborted) return;
    this.#error = error instanceof Error ? error.message : String(error);
    this.#done = true;
    this.#send(true);
  }

  #send(now: boolean): void {
    const time = performance.now();
    if (!now && time - this.#reportedMs < REPORT_INTERVAL_MS) return;
    this.#reportedMs = time;
    this.#report({
      kind: this.#kind,
      type: this.#type,
      loadedBytes: this.#loaded,
      totalBytes: this.#total,
      done: this.#done,
      error: this.#error,
      rawRows: this.#raw.rows,
      prettyRows: this.#pretty?.rows ?? 0,
      prettyBytes: this.#pretty?.bytes.length ?? 0,
      cut: this.#raw.cut || this.#pretty?.cut === true || (this.#total ?? 0) > RAW_LIMIT_BYTES,
      problem: this.#done ? (this.#printer?.problem ?? null) : null,
      isBroken: this.#isBroken,
      isAsSent: this.#isAsSent,
      layout: this.#layout,
    });
  }
}

async function readAll(body: ReadableStream<Uint8Array> | null): Promise<Uint8Array> {
  return body === null ? new Uint8Array(0) : new Uint8Array(await new Response(body as BodyInit).arrayBuffer());
}

async function failureText(response: Response): Promise<string> {
  const text = await response.text();
  try {
    const { error } = JSON.parse(text) as { error?: unknown };
    if (typeof error === "string") return error;
  } catch {
    // Not a response of the service.
  }
  return `Weir responded with ${response.status}`;
}

/**
 * Indents XML or HTML for reading. The markup is neither parsed nor corrected; other text passes unchanged. White space
 * between elements is changed, so the result is for display only.
 */
export function printMarkup(source: string, language: "xml" | "html"): string {
  const lines: string[] = [];
  let depth = 0;
  let line = "";
  const indent = (level: number) => "  ".repeat(Math.max(0, Math.min(level, MAX_INDENT)));
  const flush = (): void => {
    if (line.trim() !== "") lines.push(line.trimEnd());
    line = "";
  };
  const begin = (level: number): void => {
    flush();
    line = indent(level);
  };
  /** The element whose end tag ends the verbatim content. */
  let verbatim: string | null = null;
  let openedHere: string | null = null;
  for (const [token] of source.matchAll(TOKEN)) {
    const name = /^<\/?([A-Za-z_][\w:.-]*)/u.exec(token)?.[1] ?? null;
    const tag = language === "html" ? (name?.toLowerCase() ?? null) : name;
    const isEnd = token.startsWith("</");
    if (verbatim !== null && !(isEnd && tag === verbatim)) {
      line += token;
      continue;
    }
    if (tag === null) {
      if (!token.startsWith("<")) {
        const text = token.replaceAll(/\s+/gu, " ");
        if (text === " ") {
          if (line.trim() !== "" && language === "html") line += " ";
        } else {
          if (line.trim() === "") line = indent(depth);
          line += line.endsWith(" ") ? text.trimStart() : text;
          if (language === "xml") line = line.trimEnd();
        }
      } else {
        begin(depth);
        line += token;
        flush();
      }
      continue;
    }
    const isInline = language === "html" && INLINE.has(tag);
    if (isEnd) {
      depth = Math.max(0, depth - 1);
      if (!isInline && verbatim === null && openedHere !== tag) begin(depth);
      else if (line === "") line = indent(depth);
      line += token;
      verbatim = null;
      if (!isInline) {
        openedHere = null;
        flush();
      }
      continue;
    }
    const isEmpty = token.endsWith("/>") || (language === "html" && VOID.has(tag));
    if (!isInline) begin(depth);
    else if (line === "") line = indent(depth);
    line += token.replaceAll(/\s*\n\s*/gu, " ");
    if (!isInline) openedHere = isEmpty ? null : tag;
    if (!isEmpty) depth++;
    if (isEmpty && !isInline) flush();
    if (!isEmpty && language === "html" && VERBATIM.has(tag)) verbatim = tag;
  }
  flush();
  return lines.join("\n");
}
