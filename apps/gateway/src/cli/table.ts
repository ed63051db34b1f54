import { styleText } from "node:util";
import type { Output } from "./invocation.ts";

type Style = "bold" | "dim" | "red" | "green" | "yellow";

/** Colors on a terminal unless NO_COLOR is set. */
export function painter(
  output: Output,
  environment: Readonly<Record<string, string | undefined>>,
): (style: Style, text: string) => string {
  const isWanted = output.isTTY === true && (environment["NO_COLOR"] ?? "") === "" && environment["TERM"] !== "dumb";
  return (style, text) => (isWanted ? styleText(style, text, { validateStream: false }) : text);
}

export type Cell = string | { readonly text: string; readonly style: Style | undefined };

/** Formats a table with columns two blanks apart and escaped cells. Columns in `right` are right-aligned. */
export function tableText(
  head: readonly string[],
  rows: readonly (readonly Cell[])[],
  paint: (style: Style, text: string) => string,
  right: readonly string[] = [],
): string {
  const cells = rows.map((row) =>
    row.map((cell) => (typeof cell === "string" ? { text: cell, style: undefined } : cell)),
  );
  const shown = cells.map((row) => row.map(({ text, style }) => ({ text: visibleText(text), style })));
  const widths = head.map((title, at) => Math.max(title.length, ...shown.map((row) => row[at]?.text.length ?? 0)));
  const line = (row: readonly { readonly text: string; readonly style: Style | undefined }[]): string =>
    row
      .map(({ text, style }, at) => {
        const width = widths[at] ?? 0;
        const padded = right.includes(head[at] ?? "") ? text.padStart(width) : text.padEnd(width);
        return style === undefined ? padded : paint(style, padded);
      })
      .join("  ")
      .trimEnd();
  return [line(head.map((text) => ({ text, style: "bold" as const }))), ...shown.map(line)]
    .map((text) => `${text}\n`)
    .join("");
}

/** Escapes control characters, which could manipulate a terminal; line breaks are kept. */
export function visibleText(text: string): string {
  return text.replace(
    /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu,
    (character) => {
      return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
    },
  );
}
