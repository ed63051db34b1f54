/** What a GraphQL operation does. */
export type OperationType = "query" | "mutation" | "subscription";

/** One token that matters for finding definitions; strings and comments are swallowed whole. */
const TOKEN =
  /"""(?:[^"\\]|\\"""|\\|"(?!""))*(?:"""|$)|"(?:[^"\\\n\r]|\\.)*"?|#[^\n\r]*|[{}()[\]]|[_A-Za-z][_0-9A-Za-z]*/gy;
const OTHER = /[^"#{}()[\]_A-Za-z]+/gy;

/** Documents are read up to here. */
const LONGEST_DOCUMENT = 262_144;

/**
 * What the operation of a document does: the named one, or the first without a name or one of that name. Undefined when the text holds none. Reads only as
 * much of the grammar (GraphQL, October 2021, section 2.2) as tells definitions apart; linear in the text.
 */
export function operationType(document: string, operationName: string | undefined): OperationType | undefined {
  const text = document.length > LONGEST_DOCUMENT ? document.slice(0, LONGEST_DOCUMENT) : document;
  let depth = 0;
  let first: OperationType | undefined;
  /** The definition that began and whose braces did not come yet. */
  let begun: { readonly type: OperationType; name: string | undefined } | "other" | undefined;
  for (const token of significantTokens(text)) {
    if (token === "{" || token === "(" || token === "[") {
      if (token === "{" && depth === 0) {
        begun ??= { type: "query", name: undefined };
        if (begun !== "other") {
          if (operationName === undefined || begun.name === operationName) return begun.type;
          first ??= begun.type;
        }
      }
      depth += 1;
    } else if (token === "}" || token === ")" || token === "]") {
      depth = Math.max(0, depth - 1);
      if (token === "}" && depth === 0) begun = undefined;
    } else if (depth === 0) {
      if (begun === undefined) begun = isOperation(token) ? { type: token, name: undefined } : "other";
      else if (begun !== "other") begun.name ??= token;
    }
  }
  return first;
}

function isOperation(token: string): token is OperationType {
  return token === "query" || token === "mutation" || token === "subscription";
}

function* significantTokens(text: string): Generator<string> {
  let at = 0;
  while (at < text.length) {
    OTHER.lastIndex = at;
    if (OTHER.test(text)) {
      at = OTHER.lastIndex;
      continue;
    }
    TOKEN.lastIndex = at;
    const token = TOKEN.exec(text)?.[0];
    if (token === undefined) return;
    at = at + token.length;
    if (!token.startsWith('"') && !token.startsWith("#")) yield token;
  }
}
