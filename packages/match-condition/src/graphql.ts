import { parseBodyJson } from "@headworks/query-language";
import { parseMediaType, parseMultipart, multipartBoundary, parseUrlEncoded } from "@headworks/http-fields";
import { bodyJson, bodyText, headerValues, type MatchSubject, type NOT_READ } from "./subject.ts";

export type OperationType = "query" | "mutation" | "subscription";

/** A token relevant for finding definitions; strings and comments are matched whole. */
const TOKEN =
  /"""(?:[^"\\]|\\"""|\\|"(?!""))*(?:"""|$)|"(?:[^"\\\n\r]|\\.)*"?|#[^\n\r]*|[{}()[\]]|[_A-Za-z][_0-9A-Za-z]*/gy;
const OTHER = /[^"#{}()[\]_A-Za-z]+/gy;

/** Longer documents are cut. */
const MAX_DOCUMENT_LENGTH = 262_144;
/** The `operations` part of an upload precedes its files and must end within this many characters. */
const MAX_OPERATIONS_LENGTH = 1_048_576;
const MAX_PARTS_BEFORE_OPERATIONS = 16;

export interface DefinedOperation {
  readonly type: OperationType;
  readonly name: string | undefined;
}

/**
 * The executed operation of a document: the one with the given name, else the first; undefined when there is none.
 * Parses only enough of the grammar (GraphQL, October 2021, section 2.2) to separate definitions; linear in the text.
 */
export function chosenOperation(document: string, operationName: string | undefined): DefinedOperation | undefined {
  const text = document.length > MAX_DOCUMENT_LENGTH ? document.slice(0, MAX_DOCUMENT_LENGTH) : document;
  let depth = 0;
  let first: DefinedOperation | undefined;
  /** The definition whose braces have not started yet. */
  let begun: { readonly type: OperationType; name: string | undefined } | "other" | undefined;
  for (const token of significantTokens(text)) {
    if (token === "{" || token === "(" || token === "[") {
      if (token === "{" && depth === 0) {
        begun ??= { type: "query", name: undefined };
        if (begun !== "other") {
          if (operationName === undefined || begun.name === operationName) return begun;
          first ??= begun;
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

export interface RequestedOperation {
  /** As given in the request, else in the document. */
  readonly name: string | undefined;
  /** Undefined for a stored document by id, except with GET, which can only query. */
  readonly type: OperationType | undefined;
  readonly variables: unknown;
}

/** The operations with the texts they were read from: the body may be read between two evaluations. */
interface ReadOperations {
  readonly query: string;
  readonly body: string | undefined | typeof NOT_READ;
  readonly operations: readonly RequestedOperation[];
}

/** Cache by subject. */
const readBefore = new WeakMap<MatchSubject, ReadOperations>();

/**
 * The operations of a request in all forms servers accept (GraphQL over HTTP, sections 5 and 6): JSON or a list of it,
 * the query string, `application/graphql`, forms and uploads (GraphQL multipart request specification). Without the
 * body, those of the query string.
 */
export function requestedOperations(subject: MatchSubject): readonly RequestedOperation[] {
  const { query } = subject;
  const body = bodyText(subject, "request");
  const known = readBefore.get(subject);
  if (known !== undefined && known.query === query && known.body === body) return known.operations;
  const fromUrl = query === "" ? undefined : formMembers(query);
  const canOnlyQuery = subject.method === "GET" || subject.method === "HEAD";
  const operations = sentObjects(subject, body, fromUrl).flatMap((sent) => {
    const operation = requestedOperation(sent, fromUrl, canOnlyQuery);
    return operation === undefined ? [] : [operation];
  });
  readBefore.set(subject, { query, body, operations });
  return operations;
}

type Members = Readonly<Record<string, unknown>>;

function sentObjects(subject: MatchSubject, body: ReadOperations["body"], fromUrl: Members | undefined): Members[] {
  const ofBody = typeof body === "string" && body !== "" ? bodyObjects(subject, body) : [];
  return ofBody.length === 0 && fromUrl !== undefined ? [fromUrl] : ofBody;
}

function bodyObjects(subject: MatchSubject, body: string): Members[] {
  const contentType = headerValues(subject, "request", "content-type")[0];
  const mediaType = parseMediaType(contentType);
  switch (mediaType?.essence) {
    case "application/graphql":
      // Some clients send JSON under this type.
      return /^[\s\ufeff]*\{\s*"/.test(body) ? objectsOf(bodyJson(subject, "request")) : [{ query: body }];
    case "application/x-www-form-urlencoded":
      // curl uses this type for JSON, too.
      return /^\s*[[{]/.test(body) ? objectsOf(bodyJson(subject, "request")) : [formMembers(body)];
    case "multipart/form-data":
      return uploadObjects(body, multipartBoundary(mediaType));
    default:
      return objectsOf(bodyJson(subject, "request"));
  }
}

function uploadObjects(body: string, boundary: string | undefined): Members[] {
  if (boundary === undefined) return [];
  const bytes = new TextEncoder().encode(body.slice(0, MAX_OPERATIONS_LENGTH));
  const parts = parseMultipart(bytes, boundary, { maxParts: MAX_PARTS_BEFORE_OPERATIONS })?.parts ?? [];
  const text = (name: string): string | undefined => {
    const part = parts.find((each) => each.name === name);
    return part === undefined ? undefined : new TextDecoder().decode(part.body);
  };
  const operations = text("operations");
  if (operations !== undefined) return objectsOf(parseBodyJson(operations));
  const query = text("query");
  return query === undefined ? [] : [{ query, operationName: text("operationName"), variables: text("variables") }];
}

/** A list holds several operations. */
function objectsOf(json: unknown): Members[] {
  return (Array.isArray(json) ? (json as unknown[]) : [json]).filter(
    (each): each is Members => typeof each === "object" && each !== null && !Array.isArray(each),
  );
}

/** Of several values of a name the first counts. */
function formMembers(text: string): Members {
  const members = new Map<string, string>();
  for (const { name, value } of parseUrlEncoded(text)) if (!members.has(name)) members.set(name, value);
  return Object.fromEntries(members);
}

/** Members that refer to a document stored at the server. */
const STORED_DOCUMENT_MEMBERS = ["extensions", "id", "documentId", "doc_id", "queryId", "query_id"];

function requestedOperation(
  sent: Members,
  fromUrl: Members | undefined,
  canOnlyQuery: boolean,
): RequestedOperation | undefined {
  const member = (name: string): unknown =>
    own(sent, name) ?? (fromUrl === undefined || fromUrl === sent ? undefined : own(fromUrl, name));
  const document = member("query");
  // Relay at Facebook names operations of stored documents this way.
  const named = textMember(member("operationName")) ?? textMember(member("fb_api_req_friendly_name"));
  const chosen = typeof document === "string" ? chosenOperation(document, named) : undefined;
  const variables = jsonMember(member("variables"));
  const name = named ?? chosen?.name;
  if (chosen === undefined && name === undefined && variables === undefined) return undefined;
  const isStored = chosen === undefined && STORED_DOCUMENT_MEMBERS.some((known) => member(known) !== undefined);
  return { name, type: chosen?.type ?? (isStored && canOnlyQuery ? "query" : undefined), variables };
}

function own(members: Members, name: string): unknown {
  return Object.hasOwn(members, name) ? (members[name] ?? undefined) : undefined;
}

function textMember(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** Variables are an object, or JSON text in query strings and forms. */
function jsonMember(value: unknown): unknown {
  return typeof value === "string" ? parseBodyJson(value) : value;
}
