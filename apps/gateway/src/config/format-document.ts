import { parseDocument, type Document } from "yaml";
import { withCommentLines, withoutCommentLines } from "./comment-lines.ts";
import { readYaml, YAML_OPTIONS } from "./yaml-source.ts";
import { toJson } from "./write-document.ts";

/**
 * Formats a configuration: two spaces of indentation; comments, order, quotes and anchors are kept; JSON stays JSON.
 * Undefined for syntax errors, and if the result would not be equivalent.
 */
export function formatDocument(text: string): string | undefined {
  if (readYaml(text).issues.length > 0) return undefined;
  const document = parse(text);
  try {
    const formatted = isJson(text) ? `${toJson(document.toJS(), 2)}\n` : formatText(text, document);
    return sameValues(text, formatted) ? formatted : undefined;
  } catch {
    // Aliases expand to more than can be compared.
    return undefined;
  }
}

/** Whole-line comments are hidden from the YAML library, which would move them. */
function formatText(text: string, document: Document.Parsed): string {
  const uncommented = withoutCommentLines(text, document);
  const before = parse(uncommented.text);
  const formatted = written(before);
  return withCommentLines(formatted, uncommented, parse(uncommented.text), parse(formatted)) ?? written(document);
}

function written(document: Document.Parsed): string {
  return document.toString({ indent: 2, lineWidth: 0, flowCollectionPadding: false });
}

function isJson(text: string): boolean {
  if (!text.trimStart().startsWith("{")) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function sameValues(before: string, after: string): boolean {
  return readYaml(after).issues.length === 0 && toJson(parse(before).toJS()) === toJson(parse(after).toJS());
}

function parse(text: string): Document.Parsed {
  return parseDocument(text, YAML_OPTIONS);
}
