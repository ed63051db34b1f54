const MAX_INDENT = 40;
/** After these a slash starts a regular expression, not a division. */
const BEFORE_PATTERN =
  /(?:^|[=([{,;:!&|?+*%~^<>-]|\b(?:return|typeof|case|in|of|delete|void|throw|new|do|else|yield|await))$/u;
const SCRIPT_TOKEN =
  /\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|"(?:[^"\\\n]|\\[\s\S])*"?|'(?:[^'\\\n]|\\[\s\S])*'?|`(?:[^`\\]|\\[\s\S])*`?|\s+|[\w$]+|[^\w$\s]/gu;
const STYLE_TOKEN =
  /\/\*[\s\S]*?(?:\*\/|$)|"(?:[^"\\\n]|\\[\s\S])*"?|'(?:[^'\\\n]|\\[\s\S])*'?|url\([^)"'\n]*\)?|\s+|[\w-]+|[^\w\s-]/gu;
const PATTERN = /\/(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/uy;

/**
 * Breaks and indents minified JavaScript or CSS at braces and semicolons. Names, strings, patterns and comments are
 * unchanged; source that already has lines keeps them.
 */
export function printBraces(source: string, language: "javascript" | "css"): string {
  const out = new Lines();
  const parens: boolean[] = [];
  const token = new RegExp(language === "css" ? STYLE_TOKEN : SCRIPT_TOKEN);
  let position = 0;
  while (position < source.length) {
    const text =
      language === "javascript" && source[position] === "/"
        ? (patternAt(source, position, out.tail()) ?? tokenAt(token, source, position))
        : tokenAt(token, source, position);
    position += text.length;
    if (/^\s/u.test(text)) {
      if (text.includes("\n") && parens.length === 0) out.breakLine();
      else out.space();
      continue;
    }
    switch (text) {
      case "{":
        out.space();
        out.add(text);
        out.indent();
        parens.push(false);
        out.breakLine();
        break;
      case "}":
        out.breakLine();
        out.outdent();
        parens.pop();
        out.add(text);
        if (language === "css") out.breakLine();
        else out.afterBlock(source.slice(position, position + 12));
        break;
      case "(":
      case "[":
        parens.push(true);
        out.add(text);
        break;
      case ")":
      case "]":
        if (parens.at(-1) === true) parens.pop();
        out.add(text);
        break;
      case ";":
        out.add(text);
        if (parens.at(-1) !== true) out.breakLine();
        else out.space();
        break;
      case ",":
        out.add(text);
        out.space();
        break;
      default:
        out.add(text);
        if (text.startsWith("//")) out.breakLine();
    }
  }
  return out.text();
}

function tokenAt(token: RegExp, source: string, position: number): string {
  token.lastIndex = position;
  return token.exec(source)?.[0] ?? source.slice(position);
}

function patternAt(source: string, position: number, before: string): string | null {
  if (source[position + 1] === "/" || source[position + 1] === "*" || !BEFORE_PATTERN.test(before)) return null;
  PATTERN.lastIndex = position;
  return PATTERN.exec(source)?.[0] ?? null;
}

/** The printed lines; a break is written once more text follows. */
class Lines {
  #done: string[] = [];
  #line = "";
  #depth = 0;
  #pendingBreak = false;
  #pendingSpace = false;

  /** The last characters, to distinguish a pattern from a division. */
  tail(): string {
    return (this.#line === "" ? (this.#done.at(-1) ?? "") : this.#line).slice(-12).trimEnd();
  }

  add(text: string): void {
    if (this.#pendingBreak && this.#line !== "") {
      this.#done.push(this.#line);
      this.#line = "";
    }
    if (this.#line === "") this.#line = "  ".repeat(Math.min(this.#depth, MAX_INDENT)) + text;
    else this.#line += (this.#pendingSpace && !this.#line.endsWith(" ") ? " " : "") + text;
    this.#pendingBreak = false;
    this.#pendingSpace = false;
  }

  space(): void {
    this.#pendingSpace = true;
  }

  breakLine(): void {
    this.#pendingBreak = true;
  }

  /** Ends the line after a closing brace, unless the following token continues the statement. */
  afterBlock(following: string): void {
    if (/^\s*(?:else|catch|finally|while|from|of|in|instanceof)\b/u.test(following)) this.#pendingSpace = true;
    else if (!/^\s*[,;.()[\]:?&|=*+]/u.test(following)) this.#pendingBreak = true;
  }

  indent(): void {
    this.#depth++;
  }

  outdent(): void {
    this.#depth = Math.max(0, this.#depth - 1);
  }

  text(): string {
    return [...this.#done, this.#line].join("\n").replace(/\n$/u, "");
  }
}
