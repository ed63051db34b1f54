import type { Transform } from "node:stream";
import { constants, createBrotliCompress, createGzip, createZstdCompress } from "node:zlib";
import type { Compression, Route } from "@headworks/gateway-contract";
import { foldVary, parseAcceptEncoding } from "@headworks/http-fields";
import { fieldValue, fieldValues, ownText, type RawFields, removeField, setField } from "@headworks/http1";
import type { BodyFilter, Decorator, RequestContext, ResponseHead } from "#request/context.ts";
import type { GatewaySlice } from "#slice.ts";

/** Memoized values of Accept-Encoding; browsers send few distinct ones. */
const MAX_REMEMBERED = 256;
const MAX_REMEMBERED_LENGTH = 256;

/** Negotiates a content coding (RFC 9110, 12.5.3); offered codings are in order of preference. */
export class CodingChoice {
  readonly #offered: readonly Coding[];
  readonly #known = new Map<string, Coding | undefined>();

  constructor(offered: readonly Coding[]) {
    this.#offered = offered;
  }

  /** The first offered coding that `accepted` allows; undefined for identity. */
  of(accepted: string): Coding | undefined {
    if (this.#known.has(accepted)) return this.#known.get(accepted);
    const coding = this.#chosen(accepted);
    if (accepted.length > MAX_REMEMBERED_LENGTH) return coding;
    if (this.#known.size >= MAX_REMEMBERED) this.#known.clear();
    this.#known.set(ownText(accepted), coding);
    return coding;
  }

  #chosen(accepted: string): Coding | undefined {
    const weights = parseAcceptEncoding(accepted);
    return this.#offered.find((coding) => (weights.get(coding) ?? weights.get("*") ?? 0) > 0);
  }
}

/** Level ranges and defaults that balance time and size for dynamic responses. */
const LEVELS = {
  gzip: { min: 0, max: 9, usual: 6 },
  br: { min: 0, max: 11, usual: 5 },
  zstd: { min: 1, max: 22, usual: 3 },
} as const;

/** Compresses responses of routes that enable it. */
export const compression: GatewaySlice = {
  name: "compression",
  compile: () => {
    const known = new WeakMap<Route, RouteCompression>();
    const of = (route: Route): RouteCompression | undefined => {
      if (route.compression === undefined) return undefined;
      let found = known.get(route);
      if (found === undefined) known.set(route, (found = new RouteCompression(route.compression)));
      return found;
    };
    return { bodyFilterFor: of, decoratorFor: of };
  },
};

const DEFAULT_MIN_BYTES = 1024;
const CODINGS = { gzip: "gzip", brotli: "br", zstd: "zstd" } as const;

/** Fields that describe the uncompressed bytes. */
const FIELDS_OF_BYTES = ["content-md5", "content-digest", "digest", "repr-digest", "accept-ranges"] as const;

class RouteCompression implements BodyFilter, Decorator {
  readonly on = "every-route-response";
  readonly #choice: CodingChoice;
  readonly #level: number | undefined;
  readonly #minBytes: number;
  readonly #types: readonly string[];
  readonly #excludedTypes: readonly string[];

  constructor(block: Compression) {
    this.#choice = new CodingChoice(block.algorithms.map((algorithm) => CODINGS[algorithm]));
    this.#level = block.level;
    this.#minBytes = Math.max(1, block.min_size ?? DEFAULT_MIN_BYTES);
    this.#types = (block.content_types ?? []).map((type) => type.toLowerCase());
    this.#excludedTypes = (block.excluded_content_types ?? []).map((type) => type.toLowerCase());
  }

  filter(...[request, head, framing]: Parameters<BodyFilter["filter"]>): ReturnType<BodyFilter["filter"]> {
    if (framing.kind === "none") return undefined;
    const coding = this.#codingFor(request, head, framing.kind === "length" ? framing.lengthBytes : undefined);
    if (coding === undefined) return undefined;
    describe(head.fields, coding);
    return createCompressor(coding, this.#level);
  }

  decorate(...[request, head, origin]: Parameters<Decorator["decorate"]>): void {
    if (isEncoded(head.fields)) return;
    foldVary(head.fields, "Accept-Encoding");
    if (head.status === 304) return this.#weakenConfirmedTag(request, head.fields);
    // A response to HEAD has the header of GET; the length is unknown before compression.
    if (request.method !== "HEAD" || origin === "short-circuit") return;
    const length = fieldValue(head.fields, "content-length");
    const coding = this.#codingFor(request, head, length === undefined ? undefined : Number(length));
    if (coding === undefined) return;
    removeField(head.fields, "content-length");
    describe(head.fields, coding);
  }

  /**
   * Clients hold weak tags of compressed responses. A strong tag in a 304 would let them combine the copy with a range
   * of uncompressed bytes (RFC 9110, 13.1.5).
   */
  #weakenConfirmedTag(request: RequestContext, fields: RawFields): void {
    const tag = fieldValue(fields, "etag");
    if (tag?.startsWith('"') !== true) return;
    const known = fieldValues(request.fields, "if-none-match").join();
    const isWeak =
      known === ""
        ? this.#choice.of(fieldValues(request.fields, "accept-encoding").join(",")) !== undefined
        : known.includes(`W/${tag}`);
    if (isWeak) setField(fields, "ETag", `W/${tag}`);
  }

  #codingFor(request: RequestContext, head: ResponseHead, lengthBytes: number | undefined): Coding | undefined {
    if (lengthBytes !== undefined && lengthBytes < this.#minBytes) return undefined;
    // Ranges refer to uncompressed bytes.
    if (head.status === 204 || head.status === 206 || head.status === 304) return undefined;
    const { fields } = head;
    if (isEncoded(fields) || !this.#isEligible(fieldValue(fields, "content-type") ?? "")) return undefined;
    if (fieldValues(fields, "cache-control").some(hasNoTransform)) return undefined;
    return this.#choice.of(fieldValues(request.fields, "accept-encoding").join(","));
  }

  #isEligible(contentType: string): boolean {
    const type = contentType.toLowerCase();
    const isOf = (prefix: string): boolean => type.startsWith(prefix);
    return (this.#types.length === 0 || this.#types.some(isOf)) && !this.#excludedTypes.some(isOf);
  }
}

/** Updates the header for a compressed body. */
function describe(fields: RawFields, coding: Coding): void {
  setField(fields, "Content-Encoding", coding);
  foldVary(fields, "Accept-Encoding");
  for (const name of FIELDS_OF_BYTES) removeField(fields, name);
  const tag = fieldValue(fields, "etag");
  // A strong tag identifies exact bytes (RFC 9110, 8.8.1).
  if (tag?.startsWith('"') === true) setField(fields, "ETag", `W/${tag}`);
}

function isEncoded(fields: RawFields): boolean {
  const coding = fieldValue(fields, "content-encoding");
  return coding !== undefined && coding.trim().toLowerCase() !== "identity";
}

const hasNoTransform = (cacheControl: string): boolean =>
  cacheControl.split(",").some((directive) => directive.trim().toLowerCase() === "no-transform");

/** A compressing stream that flushes each write. `level` is clamped to the coding's range. */
export function createCompressor(coding: Coding, level: number | undefined): Transform {
  const { min, max, usual } = LEVELS[coding];
  const chosen = level === undefined ? usual : Math.min(max, Math.max(min, level));
  switch (coding) {
    case "gzip":
      return createGzip({ level: chosen, flush: constants.Z_SYNC_FLUSH });
    case "br":
      return createBrotliCompress({
        flush: constants.BROTLI_OPERATION_FLUSH,
        params: { [constants.BROTLI_PARAM_QUALITY]: chosen },
      });
    case "zstd":
      return createZstdCompress({
        flush: constants.ZSTD_e_flush,
        params: { [constants.ZSTD_c_compressionLevel]: chosen },
      });
  }
}

/** Supported codings by wire name. */
type Coding = "gzip" | "br" | "zstd";
