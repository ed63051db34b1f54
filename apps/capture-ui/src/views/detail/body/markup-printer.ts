/** Elements that never have content. */
const VOID = new Set("area base br col embed hr img input link meta param source track wbr".split(" "));
/** Elements whose content is printed as it is. */
const VERBATIM = new Set(["script", "style", "pre", "textarea", "title"]);
/** Elements inside a line of text: no line break is put around them. */
const INLINE = new Set(
  "a abbr b bdi bdo br button cite code data dfn em i img input kbd label mark q s samp select small span strong sub sup time u var wbr".split(
    " ",
  ),
);
const MAX_INDENT = 40;
const TOKEN =
  /<!--[\s\S]*?(?:-->|$)|<!\[CDATA\[[\s\S]*?(?:\]\]>|$)|<[?!][^>]*>?|<\/?[A-Za-z_](?:[^>"']|"[^"]*"|'[^']*')*>?|[^<]+|</gu;

/**
 * Indents XML or HTML for reading. Nothing is parsed into a document and nothing is corrected; what is not markup passes
 * as text. White space between elements is layout here, so the result is for eyes only.
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
  /** The element whose end tag ends verbatim content. */
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
