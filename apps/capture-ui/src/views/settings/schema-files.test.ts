import assert from "node:assert/strict";
import { test } from "node:test";
import { readSchemaFiles, type ChosenFile } from "./schema-files.ts";

function file(name: string, content: string | Uint8Array, webkitRelativePath = ""): ChosenFile {
  const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
  return { name, size: bytes.length, webkitRelativePath, arrayBuffer: async () => bytes.slice().buffer };
}

test("files of a folder are sent with their paths; only .proto files are included", async () => {
  assert.deepEqual(
    await readSchemaFiles([
      file("a.proto", "für", "protos/shop/v1/a.proto"),
      file("README.md", "", "protos/README.md"),
      file("b.proto", "b"),
    ]),
    {
      ok: true,
      body: {
        files: [
          { name: "shop/v1/a.proto", base64: "ZsO8cg==" },
          { name: "b.proto", base64: "Yg==" },
        ],
      },
    },
  );
});

test("any other file is sent unchanged as a descriptor set", async () => {
  const bytes = Uint8Array.from({ length: 20_000 }, (_, at) => at % 256);
  assert.deepEqual(await readSchemaFiles([file("shop.binpb", bytes)]), {
    ok: true,
    body: { descriptor_set: Buffer.from(bytes).toString("base64"), name: "shop.binpb" },
  });
});

test("files that cannot be sent are reported", async () => {
  assert.equal((await readSchemaFiles([])).ok, false);
  assert.equal((await readSchemaFiles([file("a.bin", ""), file("b.bin", "")])).ok, false);
  assert.equal((await readSchemaFiles([{ ...file("a.proto", ""), size: 8_000_000 }])).ok, false);
});
