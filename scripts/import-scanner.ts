/** One module reference found in a source text. */
export interface ModuleReference {
  /** The specifier as written, without quotes. */
  readonly specifier: string;
  /** `import … from`, `export … from`, or `import("…")`. */
  readonly kind: "import" | "reexport" | "dynamic";
  /** True if it is erased (`import type`, `export type … from`, `typeof import("…")`). */
  readonly typeOnly: boolean;
  /** 1-based line of the keyword. */
  readonly line: number;
}

/** A lexical element; comments and white space are left out. */
export interface Token {
  readonly kind: "word" | "string" | "template" | "regex" | "punctuator";
  readonly text: string;
  readonly start: number;
}

/** Words after which a slash starts a regular expression instead of a division. */
const WORDS_BEFORE_EXPRESSION = new Set(
  "return typeof case in of delete void throw new do else instanceof yield await extends default".split(" "),
);

const WHITESPACE = /\s/u;
const WORD_START = /[\p{ID_Start}$_#\d]/u;
const WORD = /[\p{ID_Continue}$_#\u200c\u200d]+/uy;

/**
 * Finds every module reference in JavaScript, TypeScript or JSX. It works on tokens, so imports mentioned in comments,
 * strings, templates and regular expressions do not count. Broken sources never throw: an unclosed string ends with its
 * line, which also makes an apostrophe in JSX text harmless.
 */
export function scanModuleReferences(source: string): ModuleReference[] {
  const tokens = tokenize(source);
  const lineOf = lineCounter(source);
  const references: ModuleReference[] = [];
  for (let index = 0; index < tokens.length; index++) {
    const token = tokens[index];
    if (token?.kind !== "word" || tokens[index - 1]?.text === ".") continue;
    const found =
      token.text === "import"
        ? (dynamicImport(tokens, index) ?? importDeclaration(tokens, index))
        : token.text === "export"
          ? exportFrom(tokens, index)
          : undefined;
    if (found !== undefined) references.push({ ...found, line: lineOf(token.start) });
  }
  return references;
}

type Found = Omit<ModuleReference, "line">;

function dynamicImport(tokens: readonly Token[], index: number): Found | undefined {
  if (tokens[index + 1]?.text !== "(") return undefined;
  const specifier = tokens[index + 2];
  if (specifier?.kind !== "string") return undefined;
  const typeOnly = tokens[index - 1]?.text === "typeof";
  return { specifier: unquote(specifier.text), kind: "dynamic", typeOnly };
}

function importDeclaration(tokens: readonly Token[], index: number): Found | undefined {
  const first = tokens[index + 1];
  if (first?.kind === "string") return { specifier: unquote(first.text), kind: "import", typeOnly: false };
  const clauseStarts = first !== undefined && (first.kind === "word" || first.text === "{" || first.text === "*");
  if (!clauseStarts) return undefined;
  const second = tokens[index + 2];
  const third = tokens[index + 3];
  const typeOnly =
    first.text === "type" &&
    second?.text !== "," &&
    // `import type from "x"` imports a default called type; `import type from from "x"` is a type called from.
    (second?.text !== "from" || third?.text === "from");
  const specifier = specifierAfterFrom(tokens, index + 1);
  return specifier === undefined ? undefined : { specifier, kind: "import", typeOnly };
}

function exportFrom(tokens: readonly Token[], index: number): Found | undefined {
  const typeOnly = tokens[index + 1]?.text === "type";
  const clause = typeOnly ? index + 2 : index + 1;
  const opening = tokens[clause]?.text;
  if (opening !== "*" && opening !== "{") return undefined;
  const specifier = specifierAfterFrom(tokens, clause);
  return specifier === undefined ? undefined : { specifier, kind: "reexport", typeOnly };
}

/** Reads a clause of names, commas, stars and one pair of braces up to `from "…"`; anything else ends the attempt. */
function specifierAfterFrom(tokens: readonly Token[], clause: number): string | undefined {
  let insideBraces = false;
  for (let index = clause; index < tokens.length; index++) {
    const token = tokens[index];
    if (token === undefined) return undefined;
    if (token.text === "{") insideBraces = true;
    else if (token.text === "}") insideBraces = false;
    else if (token.kind === "string" && !insideBraces) {
      return tokens[index - 1]?.text === "from" ? unquote(token.text) : undefined;
    } else if (token.kind === "word" || token.text === "," || token.text === "*") continue;
    else if (token.kind === "string") continue;
    else return undefined;
  }
  return undefined;
}

function unquote(text: string): string {
  return text.slice(1, text.endsWith(text.slice(0, 1)) && text.length > 1 ? -1 : undefined);
}

function lineCounter(source: string): (offset: number) => number {
  let line = 1;
  let position = 0;
  return (offset) => {
    for (; position < offset; position++) if (source.charCodeAt(position) === 10) line++;
    return line;
  };
}

/** Splits JavaScript, TypeScript or JSX into tokens, precisely enough to find identifiers. */
export function tokenize(source: string): Token[] {
  const tokens: Token[] = [];
  // One entry per open template substitution: how many plain braces are open inside it.
  const substitutions: number[] = [];
  let offset = source.startsWith("#!") ? endOfLine(source, 0) : 0;
  while (offset < source.length) {
    const character = source.charAt(offset);
    const next = source.charAt(offset + 1);
    if (WHITESPACE.test(character)) {
      offset++;
      continue;
    }
    if (character === "/" && next === "/") {
      offset = endOfLine(source, offset);
      continue;
    }
    if (character === "/" && next === "*") {
      const end = source.indexOf("*/", offset + 2);
      offset = end === -1 ? source.length : end + 2;
      continue;
    }
    const closesSubstitution = character === "}" && substitutions.at(-1) === 0;
    if (closesSubstitution) substitutions.pop();
    else trackBraces(substitutions, character);
    const end =
      closesSubstitution || character === "`"
        ? endOfTemplateChunk(source, offset + 1)
        : endOfToken(source, offset, tokens.at(-1));
    const kind = closesSubstitution || character === "`" ? "template" : kindOf(source, offset, end);
    if (kind === "template" && source.startsWith("${", end - 2)) substitutions.push(0);
    tokens.push({ kind, text: source.slice(offset, end), start: offset });
    offset = end;
  }
  return tokens;
}

function trackBraces(substitutions: number[], character: string): void {
  const innermost = substitutions.length - 1;
  const open = substitutions[innermost];
  if (open === undefined) return;
  if (character === "{") substitutions[innermost] = open + 1;
  else if (character === "}") substitutions[innermost] = open - 1;
}

function kindOf(source: string, start: number, end: number): Token["kind"] {
  const character = source.charAt(start);
  if (character === '"' || character === "'") return "string";
  if (character === "/" && end > start + 1) return "regex";
  return WORD_START.test(String.fromCodePoint(source.codePointAt(start) ?? 0)) ? "word" : "punctuator";
}

function endOfToken(source: string, start: number, previous: Token | undefined): number {
  const character = source.charAt(start);
  if (character === '"' || character === "'") return endOfString(source, start);
  if (character === "/") return regexAllowedAfter(previous) ? endOfRegex(source, start) : start + 1;
  // One token, so that a slash after it is a division.
  if (source.startsWith("++", start) || source.startsWith("--", start)) return start + 2;
  WORD.lastIndex = start;
  return WORD.test(source) ? WORD.lastIndex : start + 1;
}

function regexAllowedAfter(previous: Token | undefined): boolean {
  if (previous === undefined) return true;
  if (previous.kind === "word") return WORDS_BEFORE_EXPRESSION.has(previous.text);
  if (previous.kind === "template") return previous.text.endsWith("${");
  // After `<` a slash closes a JSX element.
  return previous.kind === "punctuator" && ![")", "]", "}", "++", "--", "<"].includes(previous.text);
}

function endOfLine(source: string, from: number): number {
  const end = source.indexOf("\n", from);
  return end === -1 ? source.length : end;
}

function endOfString(source: string, start: number): number {
  const quote = source.charAt(start);
  for (let offset = start + 1; offset < source.length; offset++) {
    const character = source.charAt(offset);
    if (character === "\\") offset++;
    else if (character === quote) return offset + 1;
    else if (character === "\n") return offset;
  }
  return source.length;
}

/** The end of a regular expression literal, or one past the slash if the line ends first (then it is a division). */
function endOfRegex(source: string, start: number): number {
  let insideClass = false;
  for (let offset = start + 1; offset < source.length; offset++) {
    const character = source.charAt(offset);
    if (character === "\n") break;
    if (character === "\\") offset++;
    else if (character === "[") insideClass = true;
    else if (character === "]") insideClass = false;
    else if (character === "/" && !insideClass) {
      WORD.lastIndex = offset + 1;
      return WORD.test(source) ? WORD.lastIndex : offset + 1;
    }
  }
  return start + 1;
}

/** From inside a template to just past its closing backtick or past the `${` that opens a substitution. */
function endOfTemplateChunk(source: string, from: number): number {
  for (let offset = from; offset < source.length; offset++) {
    const character = source.charAt(offset);
    if (character === "\\") offset++;
    else if (character === "`") return offset + 1;
    else if (character === "$" && source.charAt(offset + 1) === "{") return offset + 2;
  }
  return source.length;
}
