import { credentials, Metadata } from "@grpc/grpc-js";
import { shopClient, SHOP_TEXT, startShop } from "./grpc-peers.ts";
import type { Order } from "./grpc-peers.ts";
import { callApi, uiFile } from "./ui-rig.ts";

const journey = uiFile();

journey("Calls of gRPC are a table of methods and statuses, and their messages are decoded", async (bench) => {
  await using shop = await startShop();
  // grpc-js looks there when a client is made.
  process.env["grpc_proxy"] = bench.weir.proxyUrl;
  const client = shopClient(`localhost:${shop.port}`, credentials.createInsecure());
  delete process.env["grpc_proxy"];
  const call = (run: (done: (error: unknown) => void) => void): Promise<unknown> => new Promise(run);
  try {
    const order: Order = { id: "42", note: "für 100 €" };
    await call((done) => client.get(order, new Metadata(), {}, done));
    await call((done) => client.fail({ id: "5" }, done));
  } finally {
    client.close();
  }
  const page = await bench.open("/streams?kind=grpc");
  const table = page.getByRole("table", { name: "gRPC calls" });
  await table.getByRole("row", { name: /Fail.*NOT_FOUND/u }).waitFor();
  await table.getByRole("row", { name: /Get.*shop\.v1\.Orders.*OK/u }).waitFor();
  await table.getByRole("button", { name: /^Get/u }).click();
  const messages = page.getByRole("group", { name: "Messages" });
  await messages.getByRole("button").first().click();
  const detail = page.getByRole("region", { name: "Message", exact: true });
  await detail.getByText("No schema knows this message").waitFor();
  await detail.getByText('2: "für 100 €"').waitFor();
  await callApi(bench.weir, "POST", "/grpc/schemas", { files: [{ name: "grpc-shop.proto", text: SHOP_TEXT }] });
  await detail.getByText('"note": "für 100 €"').waitFor();
  await detail.getByText("shop.v1.Order", { exact: true }).waitFor();
  await detail.getByRole("radio", { name: "Bytes" }).click();
  await detail.getByRole("radio", { name: "Hex" }).waitFor();
  // On a phone the table stands in the place of the list.
  await page.setViewportSize({ width: 420, height: 800 });
  await page.getByRole("button", { name: "Back to the list" }).click();
  await table.getByRole("row", { name: /Fail.*NOT_FOUND/u }).waitFor();
});
