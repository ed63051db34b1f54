import type { Writable } from "node:stream";
import { styleText } from "node:util";
import { utf8Reading } from "@headworks/http-fields";

type Style = "bold" | "dim" | "red" | "green" | "yellow" | "cyan";

/** Standard output or standard error: text that went through {@link visibleText}, or bytes meant for a program. */
export interface Terminal {
  readonly stream: Writable;
  /** A person looks at it, so control characters must not reach it. */
  readonly isTty: boolean;
  /** Columns of the window; unlimited where no window is. */
  readonly columns: number;
  write(text: string): void;
  /** The text with colours; plain under NO_COLOR and when the output is no terminal. */
  style(style: Style, text: string): string;
}

/** Wraps a standard stream of a process. `environment` decides about colours and a forced width (`COLUMNS`). */
export function terminalOf(
  stream: Writable & { isTTY?: boolean; columns?: number },
  environment: Readonly<Record<string, string | undefined>>,
): Terminal {
  const isTty = stream.isTTY === true;
  const hasColours = coloursWanted(isTty, environment);
  return {
    stream,
    isTty,
    get columns() {
      const forced = Number(environment["COLUMNS"]);
      if (isTty) return stream.columns ?? 80;
      return Number.isInteger(forced) && forced > 0 ? forced : Number.POSITIVE_INFINITY;
    },
    write: (text) => void stream.write(text),
    style: (style, text) => (hasColours ? styleText(style, text, { validateStream: false }) : text),
  };
}

/** https://no-color.org, and FORCE_COLOR as Node and others read it. */
function coloursWanted(isTty: boolean, environment: Readonly<Record<string, string | undefined>>): boolean {
  const forced = environment["FORCE_COLOR"];
  if (forced !== undefined) return forced !== "0" && forced !== "false";
  if ((environment["NO_COLOR"] ?? "") !== "" || environment["TERM"] === "dumb") return false;
  return isTty;
}

/** The octets of a field value or a reason, one character each, as the text that they spell in UTF-8 or else in Latin-1. */
export function visibleOctets(octets: string): string {
  return visibleText(utf8Reading(octets) ?? octets);
}

/**
 * Captured text without power over the terminal: control characters (C0, DEL, C1) become visible, and so do the
 * characters that reorder or hide what follows them. `keepLines` lets line feeds and tabs through.
 */
export function visibleText(text: string, keepLines = false): string {
  return text.replace(/[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g, (character) => {
    if (keepLines && (character === "\n" || character === "\t")) return character;
    const code = character.charCodeAt(0);
    if (code < 0x20) return String.fromCharCode(0x2400 + code);
    return code === 0x7f ? "\u2421" : `\\u${code.toString(16).padStart(4, "0")}`;
  });
}

/** JSON text in which nothing but its own escapes is left of control characters; it parses to the same value. */
export function visibleJson(json: string): string {
  return json.replace(
    /[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** Writes JSON unchanged; on a terminal, control characters are escaped. */
export function writeJson(stdout: Terminal, json: string): void {
  stdout.write(`${stdout.isTty ? visibleJson(json) : json}\n`);
}

/** The text as one word of a POSIX shell. */
export function shellQuoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** First and last code points that take two columns: East Asian wide and fullwidth (Unicode TR 11). */
const WIDE: readonly (readonly [number, number])[] = [
  [0x1100, 0x115f],
  [0x2e80, 0x303e],
  [0x3041, 0x33ff],
  [0x3400, 0x4dbf],
  [0x4e00, 0x9fff],
  [0xa000, 0xa4cf],
  [0xa960, 0xa97f],
  [0xac00, 0xd7a3],
  [0xf900, 0xfaff],
  [0xfe10, 0xfe19],
  [0xfe30, 0xfe6f],
  [0xff00, 0xff60],
  [0xffe0, 0xffe6],
  [0x16fe0, 0x18aff],
  [0x1aff0, 0x1b2ff],
  [0x1f200, 0x1f2ff],
  [0x20000, 0x3fffd],
];

const ASCII = /^[\x20-\x7e]*$/;
const EMOJI = /\p{Emoji_Presentation}|\p{Emoji}\ufe0f|\p{Regional_Indicator}/u;
const NO_WIDTH = /^[\p{Mn}\p{Me}\p{Cf}\p{Cc}]+$/u;

let segmenter: Intl.Segmenter | undefined;

/** Made for the first text that needs it: that takes longer than many a command. */
function segments(text: string): Intl.Segments {
  segmenter ??= new Intl.Segmenter(undefined, { granularity: "grapheme" });
  return segmenter.segment(text);
}

/** How many columns of a terminal a text without control characters takes. */
export function textWidth(text: string): number {
  if (ASCII.test(text)) return text.length;
  let width = 0;
  for (const { segment } of segments(text)) width += graphemeWidth(segment);
  return width;
}

function graphemeWidth(grapheme: string): number {
  if (NO_WIDTH.test(grapheme)) return 0;
  if (EMOJI.test(grapheme)) return 2;
  const code = grapheme.codePointAt(0) ?? 0;
  return WIDE.some(([first, last]) => code >= first && code <= last) ? 2 : 1;
}

/** The text, cut to at most `columns` with `…` at its end (or in its middle, for paths whose end matters). */
export function fitted(text: string, columns: number, where: "end" | "middle" = "end"): string {
  if (textWidth(text) <= columns) return text;
  if (columns < 1) return "";
  const graphemes = Array.from(segments(text), ({ segment }) => segment);
  if (where === "end") return `${taken(graphemes, columns - 1)}…`;
  const tail = Math.floor((columns - 1) / 3);
  return `${taken(graphemes, columns - 1 - tail)}…${takenFromEnd(graphemes, tail)}`;
}

function taken(graphemes: readonly string[], columns: number): string {
  let width = 0;
  let text = "";
  for (const grapheme of graphemes) {
    width += graphemeWidth(grapheme);
    if (width > columns) break;
    text += grapheme;
  }
  return text;
}

function takenFromEnd(graphemes: readonly string[], columns: number): string {
  let width = 0;
  let text = "";
  for (const grapheme of graphemes.toReversed()) {
    width += graphemeWidth(grapheme);
    if (width > columns) break;
    text = grapheme + text;
  }
  return text;
}

/** The text followed (or preceded) by spaces up to `columns`. */
export function padded(text: string, columns: number, align: "left" | "right" = "left"): string {
  const space = " ".repeat(Math.max(0, columns - textWidth(text)));
  return align === "left" ? text + space : space + text;
}
