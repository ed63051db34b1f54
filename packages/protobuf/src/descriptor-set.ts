import type { Buffer } from "node:buffer";
import { defaultJsonName } from "./schema.ts";
import type {
  DeclaredExtension,
  DeclaredField,
  DeclaredMessage,
  DeclaredMethod,
  DeclaredService,
  EnumType,
  Scalar,
  SchemaFile,
} from "./schema.ts";
import { WIRE, WireCursor } from "./wire-cursor.ts";

export class DescriptorError extends Error {
  override readonly name = "DescriptorError";
}

const MAX_MESSAGE_DEPTH = 32;
/** google.protobuf.MessageOptions.map_entry */
const MAP_ENTRY_OPTION = 7;

/**
 * Parses a google.protobuf.FileDescriptorSet from `protoc --descriptor_set_out` or `buf build`. @throws DescriptorError
 */
export function readDescriptorSet(bytes: Buffer): SchemaFile[] {
  const files: SchemaFile[] = [];
  eachField(bytes, "descriptor set", ({ number, value }) => {
    if (number === 1) files.push(readFileDescriptor(value()));
  });
  if (files.length === 0) throw new DescriptorError("The descriptor set has no files");
  return files;
}

/** Parses a google.protobuf.FileDescriptorProto from server reflection. @throws DescriptorError */
export function readFileDescriptor(bytes: Buffer): SchemaFile {
  const imports: string[] = [];
  const found: Found = { messages: [], enums: [], services: [], extensions: [] };
  let name = "";
  let packageName = "";
  let syntax = "";
  const declarations: { readonly number: number; readonly bytes: Buffer }[] = [];
  eachField(bytes, "file descriptor", ({ number, value, text }) => {
    if (number === 1) name = text();
    else if (number === 2) packageName = text();
    else if (number === 3) imports.push(text());
    else if (number === 12) syntax = text();
    else if (number >= 4 && number <= 7) declarations.push({ number, bytes: value() });
  });
  if (name === "") throw new DescriptorError("A file of the descriptor set has no name");
  const isPackedByDefault = syntax === "proto3" || syntax === "editions";
  for (const { number, bytes: declared } of declarations) {
    if (number === 4) readMessage(declared, packageName, isPackedByDefault, found, 0);
    else if (number === 5) found.enums.push(readEnum(declared, packageName));
    else if (number === 6) found.services.push(readService(declared, packageName));
    else found.extensions.push(readExtension(declared, packageName, isPackedByDefault));
  }
  return { name, packageName, imports, ...found };
}

interface Found {
  readonly messages: DeclaredMessage[];
  readonly enums: EnumType[];
  readonly services: DeclaredService[];
  readonly extensions: DeclaredExtension[];
}

interface Part {
  readonly number: number;
  /** Empty for values without a length. */
  readonly value: () => Buffer;
  readonly text: () => string;
  readonly integer: () => number;
}

function eachField(bytes: Buffer, what: string, visit: (part: Part) => void): void {
  const cursor = new WireCursor(bytes);
  while (cursor.next()) {
    const { number, wireType, varint } = cursor;
    const value = (): Buffer => (wireType === WIRE.bytes ? cursor.value() : bytes.subarray(0, 0));
    visit({
      number,
      value,
      text: () => value().toString("utf8"),
      integer: () => (wireType === WIRE.varint ? Number(BigInt.asIntN(32, varint)) : 0),
    });
  }
  if (cursor.isMalformed) throw new DescriptorError(`The bytes of the ${what} are no protocol buffers (${cursor.at})`);
}

function nameIn(scope: string, name: string): string {
  if (name === "") throw new DescriptorError(`Something in "${scope}" has no name`);
  return scope === "" ? name : `${scope}.${name}`;
}

function readMessage(bytes: Buffer, scope: string, isPacked: boolean, found: Found, depth: number): void {
  if (depth > MAX_MESSAGE_DEPTH) throw new DescriptorError(`Messages in ${scope} are nested too deep`);
  let ownName = "";
  let isMapEntry = false;
  const fields: Buffer[] = [];
  const oneofs: string[] = [];
  const inner: { readonly number: number; readonly bytes: Buffer }[] = [];
  eachField(bytes, `message in ${scope}`, ({ number, value, text }) => {
    if (number === 1) ownName = text();
    else if (number === 2) fields.push(value());
    else if (number === 3 || number === 4 || number === 6) inner.push({ number, bytes: value() });
    else if (number === 7) isMapEntry = readFlag(value(), MAP_ENTRY_OPTION) === true;
    else if (number === 8) oneofs.push(readName(value()));
  });
  const name = nameIn(scope, ownName);
  found.messages.push({ name, isMapEntry, fields: fields.map((field) => readField(field, isPacked, oneofs).field) });
  for (const { number, bytes: declared } of inner) {
    if (number === 3) readMessage(declared, name, isPacked, found, depth + 1);
    else if (number === 4) found.enums.push(readEnum(declared, name));
    else found.extensions.push(readExtension(declared, name, isPacked));
  }
}

function readName(bytes: Buffer): string {
  let name = "";
  eachField(bytes, "declaration", ({ number, text }) => {
    if (number === 1) name = text();
  });
  return name;
}

/** Undefined if the option is not set. */
function readFlag(options: Buffer, wanted: number): boolean | undefined {
  let flag: boolean | undefined;
  eachField(options, "options", ({ number, integer }) => {
    if (number === wanted) flag = integer() !== 0;
  });
  return flag;
}

/** google.protobuf.FieldDescriptorProto.Type, starting at 1. */
const TYPES: readonly (Scalar | "named" | "group" | undefined)[] = [
  undefined,
  "double",
  "float",
  "int64",
  "uint64",
  "int32",
  "fixed64",
  "fixed32",
  "bool",
  "string",
  "group",
  "named",
  "bytes",
  "uint32",
  "named",
  "sfixed32",
  "sfixed64",
  "sint32",
  "sint64",
];
const REPEATED = 3;
/** google.protobuf.FieldOptions.packed */
const PACKED_OPTION = 2;

function readField(
  bytes: Buffer,
  isPackedByDefault: boolean,
  oneofs: readonly string[],
): { readonly field: DeclaredField; readonly target: string } {
  let name = "";
  let target = "";
  let number = 0;
  let label = 0;
  let type = 0;
  let typeName = "";
  let jsonName = "";
  let oneof: number | undefined;
  let packed: boolean | undefined;
  let isPresence = false;
  eachField(bytes, "field", (part) => {
    if (part.number === 1) name = part.text();
    else if (part.number === 2) target = part.text();
    else if (part.number === 3) number = part.integer();
    else if (part.number === 4) label = part.integer();
    else if (part.number === 5) type = part.integer();
    else if (part.number === 6) typeName = part.text();
    else if (part.number === 8) packed = readFlag(part.value(), PACKED_OPTION);
    else if (part.number === 9) oneof = part.integer();
    else if (part.number === 10) jsonName = part.text();
    else if (part.number === 17) isPresence = part.integer() !== 0;
  });
  const kind = TYPES[type];
  if (kind === undefined) throw new DescriptorError(`The field ${name} has the unknown type ${type}`);
  const oneofName = oneof === undefined || isPresence ? undefined : oneofs[oneof];
  const field = {
    number,
    name,
    jsonName: jsonName === "" ? defaultJsonName(name) : jsonName,
    kind,
    ...(kind === "named" || kind === "group" ? { typeName } : {}),
    isRepeated: label === REPEATED,
    isPacked: label === REPEATED && (packed ?? isPackedByDefault),
    ...(oneofName === undefined ? {} : { oneof: oneofName }),
  };
  return { field, target };
}

function readExtension(bytes: Buffer, scope: string, isPackedByDefault: boolean): DeclaredExtension {
  const { field, target } = readField(bytes, isPackedByDefault, []);
  const name = `[${nameIn(scope, field.name)}]`;
  return { scope, target, field: { ...field, name, jsonName: name } };
}

function readEnum(bytes: Buffer, scope: string): EnumType {
  let name = "";
  const values: [string, number][] = [];
  eachField(bytes, "enum", ({ number, value, text }) => {
    if (number === 1) name = text();
    else if (number === 2) {
      const option: [string, number] = ["", 0];
      eachField(value(), "enum value", (part) => {
        if (part.number === 1) option[0] = part.text();
        else if (part.number === 2) option[1] = part.integer();
      });
      values.push(option);
    }
  });
  return { name: nameIn(scope, name), values };
}

function readService(bytes: Buffer, scope: string): DeclaredService {
  let name = "";
  const methods: DeclaredMethod[] = [];
  eachField(bytes, "service", ({ number, value, text }) => {
    if (number === 1) name = text();
    else if (number === 2) methods.push(readMethod(value()));
  });
  return { name: nameIn(scope, name), methods };
}

function readMethod(bytes: Buffer): DeclaredMethod {
  let name = "";
  let input = "";
  let output = "";
  let isClientStreaming = false;
  let isServerStreaming = false;
  eachField(bytes, "method", ({ number, text, integer }) => {
    if (number === 1) name = text();
    else if (number === 2) input = text();
    else if (number === 3) output = text();
    else if (number === 5) isClientStreaming = integer() !== 0;
    else if (number === 6) isServerStreaming = integer() !== 0;
  });
  return { name, input, output, isClientStreaming, isServerStreaming };
}
