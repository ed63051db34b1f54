import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { frameMessage } from "@headworks/grpc-framing";
import type { GrpcStream } from "@headworks/capture-contract";
import { temporaryDirectory, waitUntil } from "@headworks/testkit";
import type { TemporaryDirectory } from "@headworks/testkit";
import { runInside } from "./cli-rig.ts";
import { startProxyRig } from "./proxy-rig.ts";
import type { ProxyRig } from "./proxy-rig.ts";

let rig: ProxyRig;
let directory: TemporaryDirectory;
before(async () => {
  rig = await startProxyRig();
  directory = await temporaryDirectory();
  await mkdir(directory.file("proto/shop"), { recursive: true });
  const head = 'syntax = "proto3"; package shop;';
  await writeFile(
    directory.file("proto/orders.proto"),
    `${head} import "shop/types.proto"; service Orders { rpc Get(Order) returns (Order); }`,
  );
  await writeFile(directory.file("proto/shop/types.proto"), `${head} message Order { int32 id = 1; string note = 2; }`);
  rig.respond = (_, response) => {
    const body = [
      frameMessage(Buffer.from("0896011203616263", "hex")),
      frameMessage(Buffer.from("grpc-status:0\r\n"), 128),
    ];
    response.writeHead(200, { "content-type": "application/grpc-web" }).end(Buffer.concat(body));
  };
  const headers = { "content-type": "application/grpc-web" };
  await rig.send({ method: "POST", path: "/shop.Orders/Get", headers, body: frameMessage(Buffer.from("0807", "hex")) });
  await waitUntil(async () => (await rig.api<GrpcStream[]>("GET", "/grpc/streams?status_code=0")).length === 1);
});
after(async () => {
  await rig[Symbol.asyncDispose]();
  await directory.remove();
});

const run = async (...args: string[]) => await runInside([...args, "--api-url", rig.proxy.addresses.api]);

test("calls and messages are tables, by number without a schema and by name with one", async () => {
  const calls = await run("grpc", "streams", "--service", "Orders", "-s", "OK");
  assert.match(calls.stdout, /^Status .*Service .*Method/u);
  assert.match(calls.stdout, /OK +shop\.Orders +Get/u);
  assert.match((await run("grpc", "frames", "--direction", "request")).stdout, /→ +Get +2 B.*\[\{"1":"7"\}\]/u);
  const added = await run("grpc", "schemas", "add", directory.file("proto"));
  assert.equal(added.code, 0, added.stderr);
  assert.match(added.stdout, /orders\.proto +proto +shop\.Orders +1/u);
  assert.match((await run("grpc", "frames", "-l", "10")).stdout, /← +Get.*\{"id":150,"note":"abc"\}/u);
  assert.match((await run("grpc", "connections")).stdout, /closed +127\.0\.0\.1/u);
  assert.match((await run("grpc", "stats")).stdout, /by_status\.0 +1/u);
  const [schema] = JSON.parse((await run("grpc", "schemas", "list", "--json")).stdout) as [{ id: string }];
  assert.equal((await run("grpc", "schemas", "remove", schema.id)).code, 0);
  assert.equal((await run("grpc", "schemas", "list", "--json")).stdout.trim(), "[]");
});

test("what cannot be added is named, and the exit code says so", async () => {
  const missing = await run("grpc", "schemas", "add", directory.file("proto/orders.proto"));
  assert.notEqual(missing.code, 0);
  assert.match(missing.stderr, /imports shop\/types\.proto, which was not given/u);
  const absent = await run("grpc", "schemas", "add", directory.file("nothing.proto"));
  assert.notEqual(absent.code, 0);
  assert.match(absent.stderr, /Cannot read/u);
  const refused = await run("grpc", "schemas", "reflect", "nonsense");
  assert.notEqual(refused.code, 0);
  assert.match(refused.stderr, /must be a URL that begins with https/u);
});
