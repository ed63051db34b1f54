import {
  buildSchema,
  DescriptorError,
  missingImports,
  parseProtoText,
  ProtoTextError,
  readDescriptorSet,
  readFileDescriptor,
  type SchemaFile,
} from "@headworks/protobuf";
import { serveRequests } from "@headworks/worker-host";

const MAX_NAME_LENGTH = 1024;

export type SchemaText =
  | { readonly kind: "proto"; readonly files: readonly { readonly name: string; readonly text: string }[] }
  | { readonly kind: "descriptor_set"; readonly bytes: Uint8Array }
  /** One file descriptor each. */
  | { readonly kind: "descriptors"; readonly files: readonly Uint8Array[] };

export type ReadSchema = { readonly files: readonly SchemaFile[] } | { readonly problem: string };

serveRequests((text: SchemaText) => ({ value: read(text), transfer: [] }));

function read(text: SchemaText): ReadSchema {
  try {
    const files = readFiles(text);
    const problem = problemOf(files);
    return problem === undefined ? { files } : { problem };
  } catch (error) {
    if (error instanceof ProtoTextError || error instanceof DescriptorError) {
      return { problem: error.message };
    }
    throw error;
  }
}

function readFiles(text: SchemaText): SchemaFile[] {
  switch (text.kind) {
    case "proto":
      return text.files.map((file) => parseProtoText(file.name, file.text));
    case "descriptor_set":
      return readDescriptorSet(Buffer.from(text.bytes));
    case "descriptors":
      return text.files.map((file) => readFileDescriptor(Buffer.from(file)));
  }
}

function problemOf(files: readonly SchemaFile[]): string | undefined {
  const [missing] = missingImports(files);
  if (missing !== undefined) return `${missing.file} imports ${missing.missing}, which was not given`;
  for (const { messages, enums, services } of files) {
    const long = [...messages, ...enums, ...services].find(({ name }) => name.length > MAX_NAME_LENGTH);
    if (long !== undefined) return `A name is longer than ${MAX_NAME_LENGTH} characters: ${long.name.slice(0, 80)}…`;
  }
  // Linking is tested here, so that a slow schema does not block the proxy's thread.
  const { schema } = buildSchema(files);
  if (files.every((file) => file.messages.length + file.enums.length + file.services.length === 0)) {
    return "Nothing is declared in it";
  }
  return schema.messages.size > 200_000 ? "It declares more messages than can be kept" : undefined;
}
