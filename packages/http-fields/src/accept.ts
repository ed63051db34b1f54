import { isToken, parseParameter, splitOutsideQuotes, type Parameter } from "./parameters.ts";
import { parseMediaType, type MediaType } from "./media-type.ts";

/** One media range of an Accept field. */
export interface MediaRange {
  /** Lower case; `*` for any. */
  type: string;
  subtype: string;
  /** Without `q`. */
  parameters: readonly Parameter[];
  /** 0 to 1. */
  quality: number;
}

const WEIGHT = /^(?:0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)$/;

/**
 * Content codings of an Accept-Encoding value (RFC 9110 section 12.5.3) with their weights, in order, including `*`
 * and `identity`. Malformed members are skipped.
 */
export function parseAcceptEncoding(text: string): ReadonlyMap<string, number> {
  const codings = new Map<string, number>();
  for (const member of text.split(",")) {
    const [name = "", ...parameters] = member.split(";").map((piece) => piece.trim().toLowerCase());
    if (name === "" || parameters.length > 1) continue;
    const [weight = "q=1"] = parameters;
    if (!weight.startsWith("q=") || !WEIGHT.test(weight.slice(2))) continue;
    codings.set(name === "x-gzip" ? "gzip" : name, Number(weight.slice(2)));
  }
  return codings;
}

/** Parses an Accept value (RFC 9110 section 12.5.1), in order; malformed ranges are skipped. */
export function parseAccept(text: string): MediaRange[] {
  return splitOutsideQuotes(text, ",")
    .map(parseRange)
    .filter((range) => range !== undefined);
}

function parseRange(text: string): MediaRange | undefined {
  const [essence = "", ...rest] = splitOutsideQuotes(text, ";");
  const [type = "", subtype = "", ...more] = essence.toLowerCase().split("/");
  if (!isToken(type) || !isToken(subtype) || more.length > 0 || (type === "*" && subtype !== "*")) return undefined;
  const parameters: Parameter[] = [];
  let quality = 1;
  for (const piece of rest) {
    const parameter = parseParameter(piece);
    if (parameter?.[0] === "q") {
      if (!WEIGHT.test(parameter[1])) return undefined;
      quality = Number(parameter[1]);
      break;
    }
    if (parameter !== undefined) parameters.push(parameter);
  }
  return { type, subtype, parameters, quality };
}

/**
 * The offered media type that the client prefers, or undefined if it accepts none. The most specific range sets the
 * quality of an offer; of equal qualities the more specific range wins, then the first range, then the first offer.
 * Without an Accept field (or an empty one) the first offer is chosen.
 */
export function negotiate<T extends string>(accept: string | undefined, offers: readonly T[]): T | undefined {
  if (accept === undefined || accept.trim() === "") return offers[0];
  const ranges = parseAccept(accept);
  let best: { offer: T; rank: Rank } | undefined;
  for (const offer of offers) {
    const mediaType = parseMediaType(offer);
    const rank = mediaType === undefined ? undefined : rankOf(mediaType, ranges);
    if (rank !== undefined && rank.quality > 0 && (best === undefined || isBetter(rank, best.rank))) {
      best = { offer, rank };
    }
  }
  return best?.offer;
}

interface Rank {
  quality: number;
  specificity: number;
  place: number;
}

function rankOf(offer: MediaType, ranges: readonly MediaRange[]): Rank | undefined {
  let best: Rank | undefined;
  for (const [place, range] of ranges.entries()) {
    const specificity = specificityOf(range, offer);
    if (specificity === undefined) continue;
    if (best === undefined || specificity > best.specificity) best = { quality: range.quality, specificity, place };
  }
  return best;
}

/** 0 for any type, 1 for any subtype, 2 for an exact type, more with parameters; undefined without a match. */
function specificityOf(range: MediaRange, offer: MediaType): number | undefined {
  if (range.type !== "*" && range.type !== offer.type) return undefined;
  if (range.subtype !== "*" && range.subtype !== offer.subtype) return undefined;
  const offered = (parameter: Parameter): boolean =>
    offer.parameters.some(
      ([name, value]) => name === parameter[0] && value.toLowerCase() === parameter[1].toLowerCase(),
    );
  if (!range.parameters.every(offered)) return undefined;
  return (range.type === "*" ? 0 : range.subtype === "*" ? 1 : 2) + range.parameters.length;
}

function isBetter(one: Rank, other: Rank): boolean {
  if (one.quality !== other.quality) return one.quality > other.quality;
  if (one.specificity !== other.specificity) return one.specificity > other.specificity;
  return one.place < other.place;
}

/** Whether the client prefers HTML to JSON, as browsers do when they navigate; tools with `*\/*` do not. */
export const prefersHtml = (accept: string | undefined): boolean =>
  negotiate(accept, ["application/json", "text/html"]) === "text/html";
