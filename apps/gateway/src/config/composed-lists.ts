import { Composer, isMap, isSeq } from "yaml";
import type { CST, Document, DocumentOptions, Node, ParseOptions, SchemaOptions, YAMLSeq } from "yaml";
import type { Steps } from "./steps.ts";

type ListToken = CST.BlockSequence | CST.FlowCollection;
type ListItems = ListToken["items"];
type ComposerOptions = ParseOptions & DocumentOptions & SchemaOptions;

/** What was cut off a list before its document was composed. */
interface Beginning {
  /** The list's own token, which keeps its last members: what follows it is read from where they end. */
  readonly list: ListToken;
  readonly parts: readonly ListItems[];
}

/**
 * Composes tokens to documents, the first of them in steps: lists right below its root, which are what grows in a
 * configuration, `membersOfAStep` at a time. The result is what the library makes of the whole. The tokens are used up.
 */
export function* composedInSteps(
  tokens: readonly CST.Token[],
  options: ComposerOptions,
  membersOfAStep: number,
  endOffset: number,
): Steps<Document.Parsed[]> {
  const first = tokens.find((token) => token.type === "document");
  // What a directive says would have to be said of each part.
  const isPlain = first !== undefined && !tokens.some((token) => token.type === "directive");
  const cutOff = isPlain ? cutLists(first, membersOfAStep) : [];
  const documents = [...new Composer(options).compose(tokens, true, endOffset)];
  const [document] = documents;
  if (document !== undefined) for (const beginning of cutOff) yield* join(document, beginning, options);
  return documents;
}

function cutLists(document: CST.Document, membersOfAStep: number): Beginning[] {
  const root = document.value;
  if (root?.type !== "block-map" && !isFlow(root, "{")) return [];
  const cutOff: Beginning[] = [];
  for (const { value } of root.items) {
    if (value?.type !== "block-seq" && !isFlow(value, "[")) continue;
    const parts = cut(value, membersOfAStep);
    if (parts.length > 0) cutOff.push({ list: value, parts });
  }
  return cutOff;
}

function isFlow(token: CST.Token | null | undefined, bracket: "[" | "{"): token is CST.FlowCollection {
  return token?.type === "flow-collection" && token.start.source === bracket;
}

/** Cuts a list to its last members; gives those before them, in parts. */
function cut(list: ListToken, membersOfAStep: number): ListItems[] {
  const parts: ListItems[] = [];
  let from = 0;
  for (let at = membersOfAStep; at < list.items.length; at += 1) {
    if (at - from < membersOfAStep || !mayBeFirst(list, list.items[at])) continue;
    parts.push(list.items.slice(from, at));
    from = at;
  }
  if (from === 0) return parts;
  list.items.splice(0, from);
  // A comma stands between a member and the one before it.
  if (list.type === "flow-collection") for (const [first] of [...parts.slice(1), list.items]) first?.start.shift();
  return parts;
}

/** Whether the library says the same of an item when those before it are not there. */
function mayBeFirst(list: ListToken, item: CST.CollectionItem | undefined): boolean {
  if (item?.value === undefined) return false;
  if (list.type === "block-seq") return item.start.some(({ type }) => type === "seq-item-ind");
  return item.start[0]?.type === "comma" && item.sep === undefined;
}

function* join(document: Document.Parsed, { list, parts }: Beginning, options: ComposerOptions): Steps<void> {
  const whole = listAt(document, list.offset);
  const members: Node[] = [];
  for (const items of parts) {
    yield;
    const [part] = new Composer(options).compose([documentOf(list, items)]);
    document.errors.push(...(part?.errors ?? []));
    document.warnings.push(...(part?.warnings ?? []));
    if (isSeq<Node>(part?.contents)) for (const member of part.contents.items) members.push(member);
  }
  if (whole !== undefined) whole.items = members.concat(whole.items);
}

function listAt({ contents }: Document.Parsed, offset: number): YAMLSeq<Node> | undefined {
  if (!isMap(contents)) return undefined;
  for (const { value } of contents.items) if (isSeq<Node>(value) && value.range?.[0] === offset) return value;
  return undefined;
}

/** A document that is only this part of a list. */
function documentOf(list: ListToken, items: ListItems): CST.Document {
  const { offset, indent } = list;
  const close: CST.SourceToken = { type: "flow-seq-end", offset, indent, source: "]" };
  const value = (list.type === "block-seq" ? { ...list, items } : { ...list, items, end: [close] }) as ListToken;
  return { type: "document", offset, start: [], value };
}
