import assert from "node:assert/strict";
import { existsSync, statSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { temporaryDirectory } from "@headworks/testkit";
import { DiskReserve } from "./writer-thread.ts";

const MIB = 1_048_576;

/** A reserve on a disk with simulated free space. */
function rigOf(path: string, freeMib: number) {
  const disk = { freeMib };
  const reserve = new DiskReserve(path, () => disk.freeMib * MIB);
  return { disk, reserve, measure: () => reserve.measure("/") };
}

test("space is reserved while a disk is tight, and released afterwards", async () => {
  await using directory = await temporaryDirectory();
  const path = directory.file("reserve");
  const { disk, reserve, measure } = rigOf(path, 2000);
  measure();
  assert.deepEqual([reserve.isTight, existsSync(path)], [false, false]);
  disk.freeMib = 1000;
  measure();
  assert.deepEqual([reserve.isTight, reserve.heldBytes, statSync(path).size], [true, 32 * MIB, 32 * MIB]);
  disk.freeMib = 1100;
  measure();
  assert.deepEqual([reserve.isTight, reserve.heldBytes], [true, 32 * MIB], "a disk at the brink does not come and go");
  disk.freeMib = 1300;
  measure();
  assert.deepEqual([reserve.isTight, reserve.heldBytes, existsSync(path)], [false, 0, false]);
});

test("an eighth of a small disk's free space is reserved, and nothing if there is none", async () => {
  await using directory = await temporaryDirectory();
  const { disk, reserve, measure } = rigOf(directory.file("reserve"), 0);
  measure();
  assert.deepEqual([reserve.isTight, reserve.heldBytes], [true, 0]);
  disk.freeMib = 8;
  measure();
  assert.equal(reserve.heldBytes, MIB);
  disk.freeMib = 10;
  measure();
  assert.equal(reserve.heldBytes, MIB);
  disk.freeMib = 100;
  measure();
  assert.equal(reserve.heldBytes, 12.625 * MIB);
});

test("the reserve of an earlier run can be released once", async () => {
  await using directory = await temporaryDirectory();
  const path = directory.file("reserve");
  writeFileSync(path, Buffer.alloc(MIB));
  const { reserve } = rigOf(path, 0);
  assert.deepEqual([reserve.release(), existsSync(path), reserve.release()], [true, false, false]);
});

test("nothing is reserved if the free space is unknown", async () => {
  await using directory = await temporaryDirectory();
  const path = directory.file("reserve");
  const reserve = new DiskReserve(path, () => {
    throw new Error("ENOSYS");
  });
  reserve.measure("/");
  assert.deepEqual([reserve.isTight, existsSync(path)], [false, false]);
});
