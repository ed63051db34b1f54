import assert from "node:assert/strict";
import type { GrpcSchema } from "@headworks/capture-contract";
import { startShop } from "./grpc-peers.ts";
import { uiFile, waitForCount } from "./ui-rig.ts";

const journey = uiFile();

const ORDERS = `syntax = "proto3"; package shop; import "types.proto";
  service Orders { rpc Get(Order) returns (Order); }`;
const TYPES = 'syntax = "proto3"; package shop; message Order { int32 id = 1; }';

const file = (name: string, text: string) => ({ name, mimeType: "text/plain", buffer: Buffer.from(text) });

journey("Schemas of gRPC are added from files and from a server, and removed again", async (bench) => {
  await using shop = await startShop();
  const page = await bench.open("/settings#grpc-schemas");
  const files = page.getByLabel("Files with the schema");
  await files.setInputFiles([file("orders.proto", ORDERS)]);
  await page.getByRole("alert").filter({ hasText: "imports types.proto, which was not given" }).waitFor();
  await files.setInputFiles([file("orders.proto", ORDERS), file("types.proto", TYPES)]);
  const list = page.getByRole("list", { name: "Schemas" });
  const uploaded = list.getByRole("listitem").filter({ hasText: "orders.proto" }).first();
  await uploaded.waitFor();
  await uploaded.getByText("shop.Orders", { exact: true }).click();
  await uploaded.getByText("/shop.Orders/Get").waitFor();

  const server = page.getByLabel("From a server that offers reflection");
  await server.fill("http://127.0.0.1:9");
  await page.getByRole("button", { name: "Ask it" }).click();
  await page.getByRole("form", { name: "Schema from a server" }).getByRole("alert").waitFor();
  await server.fill(`http://127.0.0.1:${shop.port}`);
  await page.getByRole("button", { name: "Ask it" }).click();
  await list.getByText("shop.v1.Orders", { exact: true }).waitFor();
  const known = await bench.weir.get<GrpcSchema[]>("/grpc/schemas");
  assert.deepEqual(
    known.map(({ source }) => source),
    ["reflection", "proto"],
  );

  for (const { name } of known) {
    await page.getByRole("button", { name: `Remove ${name}` }).click();
    await page.getByRole("button", { name: "Remove", exact: true }).click();
    await waitForCount(page.getByRole("button", { name: `Remove ${name}` }), 0);
  }
  assert.deepEqual(await bench.weir.get("/grpc/schemas"), []);
});
