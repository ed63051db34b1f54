import {
  type Completion,
  type CompletionContext,
  type CompletionResult,
  type CompletionSource,
  snippetCompletion,
} from "@codemirror/autocomplete";
import { scopeCompletionSource, typescriptLanguage } from "@codemirror/lang-javascript";
import { syntaxTree } from "@codemirror/language";

// Completions are made from the declarations that the service publishes, so that there is one description of the API.

type SyntaxNode = ReturnType<typeof syntaxTree>["topNode"];

/** A property, function or variable of the API. */
interface Member {
  readonly name: string;
  /** Type after a colon, or parameters and result. */
  readonly detail: string;
  readonly doc: string;
  /** Type of the value, or of the result of a call. */
  readonly type: SyntaxNode | null;
  readonly result: SyntaxNode | null;
  readonly parameters: readonly Member[] | null;
}

/** The API of scripts, read from TypeScript declarations. */
export interface ScriptApi {
  readonly globals: readonly Member[];
  /** Functions that a script declares: `onRequest`. */
  readonly hooks: ReadonlyMap<string, Member>;
  readonly membersOf: (type: SyntaxNode | null) => readonly Member[];
}

const HOOK = /^on[A-Z]/u;
/** Types nested deeper than this are not followed: declarations may be recursive. */
const MAX_DEPTH = 8;

/** Types that have members, alone or as parts of others. */
const COMPOSED = ["ObjectType", "TypeName", "ParameterizedType", "UnionType", "IntersectionType", "ParenthesizedType"];

function childrenOf(node: SyntaxNode): readonly SyntaxNode[] {
  const list: SyntaxNode[] = [];
  for (let child = node.firstChild; child !== null; child = child.nextSibling) list.push(child);
  return list;
}

/** Reads members from declarations. */
function memberReader(text: string) {
  const of = (node: SyntaxNode): string => text.slice(node.from, node.to);
  const docBefore = (node: SyntaxNode): string => {
    const before = node.prevSibling;
    return before?.name === "BlockComment" ? plainDoc(of(before)) : "";
  };
  const typeIn = (node: SyntaxNode): SyntaxNode | null => node.getChild("TypeAnnotation")?.lastChild ?? null;
  const parametersOf = (list: SyntaxNode): Member[] =>
    list.getChildren("VariableDefinition").map((node) => {
      const next = node.nextSibling?.name === "Optional" ? node.nextSibling.nextSibling : node.nextSibling;
      return value(of(node), next?.name === "TypeAnnotation" ? next.lastChild : null, "");
    });
  const value = (name: string, type: SyntaxNode | null, doc: string): Member => {
    // A property whose type is a function is called like a method.
    const signature = type?.name === "FunctionSignature" ? type : null;
    const list = signature?.getChild("ParamList") ?? null;
    return {
      name,
      detail: type === null ? "" : shortened(`: ${of(type)}`),
      doc,
      type,
      result: signature?.lastChild ?? null,
      parameters: list === null ? null : parametersOf(list),
    };
  };
  const call = (name: string, node: SyntaxNode, doc: string): Member => {
    const list = node.getChild("ParamList");
    const result = typeIn(node);
    return {
      name,
      detail: shortened(`${list === null ? "()" : of(list)}${result === null ? "" : `: ${of(result)}`}`),
      doc,
      type: null,
      result,
      parameters: list === null ? [] : parametersOf(list),
    };
  };
  /** Members of an object type. */
  const properties = (node: SyntaxNode): Member[] =>
    childrenOf(node).flatMap((child) => {
      const name = child.getChild("PropertyDefinition");
      if (name === null) return [];
      if (child.name === "MethodType") return [call(of(name), child, docBefore(child))];
      return child.name === "PropertyType" ? [value(of(name), typeIn(child), docBefore(child))] : [];
    });
  /** Functions of a namespace. */
  const functions = (node: SyntaxNode): Member[] =>
    childrenOf(node.getChild("Block") ?? node).flatMap((child) => {
      const inner = declarationOf(child);
      const name = inner?.name.endsWith("FunctionDeclaration") === true ? inner.getChild("VariableDefinition") : null;
      return inner === null || name === null ? [] : [call(of(name), inner, docBefore(child))];
    });
  return { of, docBefore, typeIn, value, call, properties, functions };
}

/** Reads `.d.ts` text. */
export function readScriptApi(text: string): ScriptApi {
  const { of, docBefore, typeIn, value, call, properties, functions } = memberReader(text);
  const types = new Map<string, SyntaxNode>();
  const globals: Member[] = [];
  const hooks = new Map<string, Member>();
  const declare = (node: SyntaxNode, doc: string): void => {
    const name = node.getChild("VariableDefinition") ?? node.getChild("TypeDefinition");
    if (name === null) return;
    switch (node.name) {
      case "InterfaceDeclaration":
      case "TypeAliasDeclaration":
        types.set(of(name), node);
        break;
      case "FunctionDeclaration":
      case "AmbientFunctionDeclaration": {
        const member = call(of(name), node, doc);
        if (HOOK.test(member.name)) hooks.set(member.name, member);
        else globals.push(member);
        break;
      }
      case "VariableDeclaration":
        globals.push(value(of(name), typeIn(node), doc));
        break;
      case "NamespaceDeclaration":
        globals.push({ ...value(of(name), node, doc), detail: "" });
        break;
    }
  };
  for (const node of childrenOf(typescriptLanguage.parser.parse(text).topNode)) {
    const inner = declarationOf(node);
    if (inner !== null) declare(inner, docBefore(node));
  }
  const membersOf = (type: SyntaxNode | null, depth = 0): readonly Member[] => {
    if (type === null || depth > MAX_DEPTH) return [];
    const ofParts = (...names: readonly string[]): readonly Member[] => {
      const parts = childrenOf(type).filter((child) => names.includes(child.name));
      // Alternatives may have members in common.
      return [
        ...new Map(parts.flatMap((part) => membersOf(part, depth + 1)).map((each) => [each.name, each])).values(),
      ];
    };
    switch (type.name) {
      case "ObjectType":
        return properties(type);
      case "NamespaceDeclaration":
        return functions(type);
      case "TypeName":
        return membersOf(types.get(of(type)) ?? null, depth + 1);
      case "ParameterizedType": {
        const own = ofParts("TypeName");
        // `Readonly<T>`, `Partial<T>`.
        return own.length > 0 ? own : ofParts("TypeArgList");
      }
      case "InterfaceDeclaration":
      case "TypeAliasDeclaration":
      case "UnionType":
      case "IntersectionType":
      case "ParenthesizedType":
      case "TypeArgList":
        return ofParts(...COMPOSED);
      default:
        return [];
    }
  };
  return { globals, hooks, membersOf };
}

/** The declaration in `export …` or `declare …`, or the node itself. */
function declarationOf(node: SyntaxNode): SyntaxNode | null {
  if (node.name !== "ExportDeclaration" && node.name !== "AmbientDeclaration") return node;
  const inner = childrenOf(node).find((child) => child.name.endsWith("Declaration"));
  return inner === undefined ? null : declarationOf(inner);
}

function plainDoc(comment: string): string {
  return comment
    .replace(/^\/\*\*?|\*\/$/gu, "")
    .replaceAll(/^[^\S\n]*\*[^\S\n]?/gmu, "")
    .trim();
}

function shortened(text: string): string {
  const line = text.replaceAll(/\s+/gu, " ");
  return line.length > 60 ? `${line.slice(0, 59)}…` : line;
}

/** The functions around a node, innermost first. */
function functionsAround(node: SyntaxNode): readonly SyntaxNode[] {
  const found: SyntaxNode[] = [];
  for (let at: SyntaxNode | null = node; at !== null; at = at.parent) {
    if (["FunctionDeclaration", "FunctionExpression", "ArrowFunction"].includes(at.name)) found.push(at);
  }
  return found;
}

/** Types of expressions of a script, as far as declarations, parameters of hooks and simple variables tell. */
function typing(api: ScriptApi, source: (node: SyntaxNode) => string) {
  const hookOf = (node: SyntaxNode): Member | undefined => {
    const name = node.name === "FunctionDeclaration" ? node.getChild("VariableDefinition") : null;
    return name === null ? undefined : api.hooks.get(source(name));
  };
  const variable = (name: string, at: SyntaxNode, depth: number): Pick<Member, "type" | "result"> | null => {
    for (const around of functionsAround(at)) {
      const parameters = childrenOf(around.getChild("ParamList") ?? around).filter(
        (child) => child.name === "VariableDefinition",
      );
      const index = around.getChild("ParamList") === null ? -1 : parameters.findIndex((each) => source(each) === name);
      if (index !== -1) return hookOf(around)?.parameters?.[index] ?? null;
    }
    for (let block: SyntaxNode | null = at; block !== null; block = block.parent) {
      for (const declaration of block.getChildren("VariableDeclaration")) {
        const defined = declaration.getChildren("VariableDefinition").find((each) => source(each) === name);
        const value = defined?.nextSibling?.name === "Equals" ? defined.nextSibling.nextSibling : null;
        if (value !== null && value !== undefined) return expression(value, depth + 1);
      }
    }
    return api.globals.find((member) => member.name === name) ?? null;
  };
  const expression = (node: SyntaxNode, depth = 0): Pick<Member, "type" | "result"> | null => {
    if (depth > MAX_DEPTH) return null;
    const [first] = childrenOf(node);
    switch (node.name) {
      case "VariableName":
        return variable(source(node), node, depth);
      case "MemberExpression": {
        const name = node.getChild("PropertyName");
        const owner = first === undefined ? null : expression(first, depth + 1);
        if (name === null || owner === null) return null;
        return api.membersOf(owner.type).find((member) => member.name === source(name)) ?? null;
      }
      case "CallExpression": {
        const called = first === undefined ? null : expression(first, depth + 1);
        return called === null ? null : { type: called.result, result: null };
      }
      default:
        return null;
    }
  };
  /** Type of the object that a hook returns, or of an object inside it. */
  const returned = (object: SyntaxNode, depth = 0): SyntaxNode | null => {
    const { parent } = object;
    if (parent === null || depth > MAX_DEPTH) return null;
    if (parent.name === "ReturnStatement") {
      const [around] = functionsAround(parent);
      return around === undefined ? null : (hookOf(around)?.result ?? null);
    }
    const name = parent.name === "Property" ? parent.getChild("PropertyDefinition") : null;
    const outer = name === null ? null : parent.parent;
    if (name === null || outer === null) return null;
    const type = returned(outer, depth + 1);
    return api.membersOf(type).find((member) => member.name === source(name))?.type ?? null;
  };
  return { expression, returned };
}

function completionOf(member: Member): Completion {
  const isCall = member.parameters !== null;
  return {
    label: member.name,
    type: isCall ? "function" : "property",
    detail: member.detail,
    ...(member.doc === "" ? {} : { info: member.doc }),
    boost: 1,
  };
}

function hookCompletion(member: Member): Completion {
  const names = (member.parameters ?? []).map(({ name }) => name).join(", ");
  return snippetCompletion(`function ${member.name}(${names}) {\n\t\${}\n}`, {
    label: member.name,
    type: "function",
    detail: `(${names})`,
    ...(member.doc === "" ? {} : { info: member.doc }),
    boost: 2,
  });
}

const WORD = /^[\w$]*$/u;
const SILENT = ["String", "TemplateString", "LineComment", "BlockComment", "RegExp", "VariableDefinition"];

/** Completes the API in scripts: members, members of returned objects, globals, and functions of hooks. */
export function scriptCompletion(api: ScriptApi): CompletionSource {
  return (context: CompletionContext): CompletionResult | null => {
    const source = (node: SyntaxNode): string => context.state.sliceDoc(node.from, node.to);
    const { expression, returned } = typing(api, source);
    const at = syntaxTree(context.state).resolveInner(context.pos, -1);
    const word = context.matchBefore(/[\w$]*/u);
    const from = word?.from ?? context.pos;
    const offer = (members: readonly Member[]): CompletionResult | null =>
      members.length === 0 ? null : { from, options: members.map(completionOf), validFor: WORD };
    if (SILENT.includes(at.name)) return null;
    const access = at.name === "MemberExpression" ? at : at.parent;
    if (access?.name === "MemberExpression" && access.firstChild !== null && at.from > access.firstChild.from) {
      return offer(api.membersOf(expression(access.firstChild)?.type ?? null));
    }
    const object = at.name === "ObjectExpression" ? at : at.name === "{" ? at.parent : (at.parent?.parent ?? null);
    if (object?.name === "ObjectExpression" && (at.name !== "VariableName" || at.parent?.name === "Property")) {
      const isKey = ["PropertyDefinition", "{", "ObjectExpression"].includes(at.name);
      const members = isKey ? api.membersOf(returned(object)) : [];
      if (members.length > 0 && (context.explicit || from < context.pos)) return offer(members);
    }
    if (from === context.pos && !context.explicit) return null;
    const isTop = functionsAround(at).length === 0;
    return {
      from,
      options: [...api.globals.map(completionOf), ...(isTop ? [...api.hooks.values()].map(hookCompletion) : [])],
      validFor: WORD,
    };
  };
}

/** What the language itself offers to scripts, which have no page and no modules of Node. */
export const standardCompletion = scopeCompletionSource({
  Array,
  BigInt,
  Boolean,
  Date,
  Error,
  JSON,
  Map,
  Math,
  Number,
  Object,
  RegExp,
  Set,
  String,
  Symbol,
  decodeURIComponent,
  encodeURIComponent,
  isNaN,
  parseFloat,
  parseInt,
});
