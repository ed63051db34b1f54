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
