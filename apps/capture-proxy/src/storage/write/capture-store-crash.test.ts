import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { spawnProcess, temporaryDirectory, waitUntil } from "@headworks/testkit";
import { openDatabase } from "../database.ts";
import { openRig } from "../store-rig.ts";

const ROUNDS = Number(process.env["WEIR_CRASH_ROUNDS"] ?? 8);
const RECORDER = fileURLToPath(new URL("./crash-recorder.ts", import.meta.url));

test("after a kill at any moment the store opens undamaged with every acknowledged entry", async () => {
  await using directory = await temporaryDirectory();
  const acknowledged = new Set<string>();
  for (let round = 0; round < ROUNDS; round += 1) {
    await using recorder = await spawnProcess(process.execPath, [RECORDER, directory.path]);
    const untilLine = 1 + Math.floor(Math.random() * 30);
    await waitUntil(() => recorder.stdout().split("\n").length > untilLine, { timeoutMs: 30_000 });
    const { stdout, stderr } = await recorder.stop("SIGKILL");
    assert.equal(stderr, "");
    // The kill may have cut the last line.
    const lines = stdout.slice(0, stdout.lastIndexOf("\n")).split("\n");
    for (const line of lines) {
      if (line.startsWith("stored ")) for (const id of line.slice(7).split(",")) acknowledged.add(id);
    }
    const database = openDatabase(directory.file("traffic.db"));
    assert.deepEqual(
      database.prepare("PRAGMA integrity_check").get(),
      Object.assign(Object.create(null), { integrity_check: "ok" }),
    );
    database.close();
    await using rig = await openRig(directory.path);
    assert.deepEqual(rig.alarms, []);
    const database2 = openDatabase(directory.file("traffic.db"), { readOnly: true });
    const stored = new Set(
      database2
        .prepare("SELECT id FROM entry")
        .all()
        .map((row) => String(row["id"])),
    );
    const counted = database2.prepare("SELECT entry_count, stored_bytes FROM session").get();
    const real = database2
      .prepare(
        "SELECT COUNT(*) AS entries, SUM(request_body_stored + response_body_stored) + " +
          "(SELECT IFNULL(SUM(length(payload)), 0) FROM stream_frame) AS bytes FROM entry",
      )
      .get();
    const streams = database2
      .prepare(
        "SELECT id, state, frames_sent, frames_stored, (SELECT COUNT(*) FROM stream_frame f WHERE f.stream = s.number) AS frames FROM stream s",
      )
      .all();
    database2.close();
    for (const id of acknowledged) assert.ok(stored.has(id), `${id} was acknowledged in round ${round} or before`);
    assert.equal(counted?.["entry_count"], real?.["entries"], "counters agree with the rows");
    assert.equal(counted?.["stored_bytes"], real?.["bytes"]);
    for (const stream of streams) {
      assert.ok(stored.has(String(stream["id"])), "a stream goes with its entry");
      assert.deepEqual(
        [stream["state"], stream["frames_sent"], stream["frames_stored"], stream["frames"]],
        [3, 40, 40, 40],
      );
    }
    assert.equal(streams.length > 0, acknowledged.size > 0);
    assert.equal(rig.store.status().entryCount, stored.size);
  }
});
