import type { Transforms } from "@headworks/gateway-contract";
import { parseUrlEncoded } from "@headworks/http-fields";

type QueryChanges = NonNullable<NonNullable<Transforms["request"]>["query"]>;

/** A parameter as it is to be sent. */
interface Piece {
  name: string;
  text: string;
}

/**
 * Makes what sets, adds, renames and removes parameters of a target's query, in this order. Names are compared decoded,
 * so that no spelling slips through; what is not concerned stays byte for byte. Undefined when nothing is to be done.
 */
export function compileQueryChanges(changes: QueryChanges | undefined): ((target: string) => string) | undefined {
  if (changes === undefined) return undefined;
  const steps = [
    ...Object.entries(changes.set ?? {}).map(([name, value]) => setting(name, encoded(name, value))),
    ...Object.entries(changes.add ?? {}).map(([name, value]) => adding(name, encoded(name, value))),
    ...Object.entries(changes.rename ?? {}).map(([from, to]) => renaming(from, to)),
    ...(changes.remove ?? []).map(
      (name) => (pieces: readonly Piece[]) => pieces.filter((piece) => piece.name !== name),
    ),
  ];
  if (steps.length === 0) return undefined;
  return (target) => {
    const mark = target.indexOf("?");
    const path = mark === -1 ? target : target.slice(0, mark);
    let pieces: readonly Piece[] = mark === -1 ? [] : piecesOf(target.slice(mark + 1));
    for (const step of steps) pieces = step(pieces);
    return pieces.length === 0 ? path : `${path}?${pieces.map(({ text }) => text).join("&")}`;
  };
}

type Step = (pieces: readonly Piece[]) => readonly Piece[];

function piecesOf(query: string): Piece[] {
  return parseUrlEncoded(query).map(({ name, rawName, rawValue }) => ({
    name,
    text: rawValue === undefined ? rawName : `${rawName}=${rawValue}`,
  }));
}

function setting(name: string, text: string): Step {
  return (pieces) => {
    const at = pieces.findIndex((piece) => piece.name === name);
    if (at === -1) return [...pieces, { name, text }];
    return pieces.flatMap((piece, index) => (index === at ? { name, text } : piece.name === name ? [] : piece));
  };
}

function adding(name: string, text: string): Step {
  return (pieces) => [...pieces, { name, text }];
}

function renaming(from: string, to: string): Step {
  return (pieces) =>
    pieces.map((piece) => {
      if (piece.name !== from) return piece;
      const equals = piece.text.indexOf("=");
      return { name: to, text: encodedPart(to) + (equals === -1 ? "" : piece.text.slice(equals)) };
    });
}

const encoded = (name: string, value: string): string => `${encodedPart(name)}=${encodedPart(value)}`;

/** Halves of characters cannot be encoded; they become U+FFFD. */
const encodedPart = (text: string): string => encodeURIComponent(text.toWellFormed());
