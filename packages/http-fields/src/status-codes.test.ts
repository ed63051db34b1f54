import assert from "node:assert/strict";
import { test } from "node:test";
import { GRPC_STATUS_NAMES, parseGrpcStatus } from "./status-codes.ts";

test("status codes of gRPC go by number or name", () => {
  for (const [code, name] of GRPC_STATUS_NAMES.entries()) {
    assert.equal(parseGrpcStatus(String(code)), code);
    assert.equal(parseGrpcStatus(name.toLowerCase()), code);
  }
  assert.equal(GRPC_STATUS_NAMES[16], "UNAUTHENTICATED");
  assert.equal(parseGrpcStatus("nothing"), undefined);
  assert.equal(parseGrpcStatus(""), undefined);
});
