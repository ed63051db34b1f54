import { percentDecoded } from "@headworks/http-fields";
import { splitQuery } from "./url-edit.ts";

/**
 * Gives a query parameter one value: in the place of its first piece, further ones go; at the end when there is none,
 * or always with `append`. All other bytes of the path and query stay as they are.
 */
export function withQueryParameter(path: string, name: string, value: string, append = false): string {
  const [bare, query] = splitQuery(path);
  const piece = `${encodeQueryText(name)}=${encodeQueryText(value)}`;
  const pieces = query === undefined || query === "" ? [] : query.split("&");
  const first = append ? -1 : pieces.findIndex((own) => isNamed(own, name));
  if (first === -1) return joined(bare, query === "" ? undefined : query, piece);
  const kept = pieces.flatMap((own, at) => {
    if (!isNamed(own, name)) return [own];
    if (at !== first) return [];
    return [valueOf(own) === value ? own : piece];
  });
  return `${bare}?${kept.join("&")}`;
}

/** Removes all pieces of a parameter, and the question mark with the last one. */
export function withoutQueryParameter(path: string, name: string): string {
  const [bare, query] = splitQuery(path);
  if (query === undefined) return path;
  const pieces = query.split("&");
  const kept = pieces.filter((own) => !isNamed(own, name));
  if (kept.length === pieces.length) return path;
  return kept.length === 0 ? bare : `${bare}?${kept.join("&")}`;
}

function joined(bare: string, query: string | undefined, piece: string): string {
  if (query === undefined) return `${bare}?${piece}`;
  return query.endsWith("&") ? `${bare}?${query}${piece}` : `${bare}?${query}&${piece}`;
}

function isNamed(piece: string, name: string): boolean {
  if (piece === "") return false;
  const equals = piece.indexOf("=");
  return formDecoded(equals === -1 ? piece : piece.slice(0, equals)) === name;
}

function valueOf(piece: string): string | undefined {
  const equals = piece.indexOf("=");
  return equals === -1 ? undefined : formDecoded(piece.slice(equals + 1));
}

const formDecoded = (text: string): string => percentDecoded(text.replaceAll("+", " "));

/** As `encodeURIComponent`, which throws on halves of characters; they become U+FFFD. */
const encodeQueryText = (text: string): string => encodeURIComponent(text.toWellFormed());
