import type { NewGrpcSchema } from "@headworks/capture-contract";

/** The request may have 10 MiB, base64 included. */
const MAX_BYTES = 7 * 1024 * 1024;

/** Chunk size for converting bytes to characters: calls limit the number of arguments. */
const CHUNK_BYTES = 8192;

/** The needed parts of a browser File; for a selected folder, `webkitRelativePath` starts with its name. */
export interface ChosenFile {
  readonly name: string;
  readonly size: number;
  readonly webkitRelativePath?: string;
  arrayBuffer(): Promise<ArrayBuffer>;
}

/** The request body for the selected files, or an error. */
export type ReadSchema =
  | { readonly ok: true; readonly body: NewGrpcSchema }
  | { readonly ok: false; readonly message: string };

export async function readSchemaFiles(files: readonly ChosenFile[]): Promise<ReadSchema> {
  const protos = files.filter(({ name }) => name.endsWith(".proto"));
  const [only] = files;
  if (only === undefined) return { ok: false, message: "No file selected" };
  if (files.reduce((sum, { size }) => sum + size, 0) > MAX_BYTES) {
    return { ok: false, message: "The files exceed 7 MiB in total" };
  }
  if (protos.length > 0) {
    // Other files of a selected folder are ignored.
    const read = protos.map(async (file) => ({ name: importName(file), base64: await base64Of(file) }));
    return { ok: true, body: { files: await Promise.all(read) } };
  }
  if (files.length > 1) return { ok: false, message: "Add a descriptor set on its own, or only .proto files" };
  return { ok: true, body: { descriptor_set: await base64Of(only), name: only.name } };
}

/** The path inside the selected folder, used by imports. */
function importName({ name, webkitRelativePath = "" }: ChosenFile): string {
  return webkitRelativePath === "" ? name : webkitRelativePath.slice(webkitRelativePath.indexOf("/") + 1);
}

async function base64Of(file: ChosenFile): Promise<string> {
  const bytes = new Uint8Array(await file.arrayBuffer());
  let text = "";
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES) {
    text += String.fromCharCode(...bytes.subarray(at, at + CHUNK_BYTES));
  }
  return btoa(text);
}
