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
