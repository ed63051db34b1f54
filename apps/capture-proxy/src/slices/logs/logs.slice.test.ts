import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { LogLines, LogRotated, LogStatus } from "@headworks/capture-contract";
import { FakeClock, temporaryDirectory } from "@headworks/testkit";
import { openLogOutput } from "#logging/log-output.ts";
import { defaultDataPaths } from "#settings/data-paths.ts";
import type { LogDestination } from "#logging/log-output.ts";
import { startApi } from "../../../test/api-rig.ts";
import type { ApiRig } from "../../../test/api-rig.ts";
import { createLogsSlice } from "./logs.slice.ts";

interface Rig extends AsyncDisposable {
  readonly api: ApiRig;
  readonly output: LogDestination;
  say(text: string): Promise<void>;
  status(): Promise<LogStatus>;
  change(body: object, status?: number): Promise<LogStatus & { message: string }>;
}

async function start(flags: Record<string, string | boolean> = {}): Promise<Rig> {
  const directory = await temporaryDirectory();
  const output = openLogOutput({
    path: defaultDataPaths(directory.path).logFile,
    stream: { write: () => true, flushSync: () => undefined },
    hasColours: false,
    isJson: false,
    hasFile: true,
    clock: new FakeClock(Date.now()),
    reportProblem: () => undefined,
  });
  const api = await startApi({ flags, logs: output, slices: (host) => [createLogsSlice(host)] });
  output.begin(api.settings.running.log_config);
  output.openFile(api.settings.running.log_config);
  api.settings.onChange(({ log_config }) => output.configure(log_config));
  return {
    api,
    output,
    say: async (text) => {
      output.write(JSON.stringify({ level: 30, time: 0, msg: text }));
      await output.settled();
    },
    status: async () => (await api.call("GET", "/api/logs")).json as LogStatus,
    change: async (body, status = 200) => {
      const response = await api.call("PATCH", "/api/logs", body);
      assert.equal(response.status, status, JSON.stringify(response.json));
      return response.json as LogStatus & { message: string };
    },
    [Symbol.asyncDispose]: async () => {
      await output.close();
      await api[Symbol.asyncDispose]();
      await directory.remove();
    },
  };
}

const stored = (rig: Rig): Record<string, unknown> =>
  JSON.parse(readFileSync(rig.api.directory.file("config.json"), "utf8")) as Record<string, unknown>;

test("the status shows the settings, the file, its archives newest first, and how writing goes", async () => {
  await using rig = await start();
  await rig.say("one");
  await rig.say("two");
  const { archived_files: archives, ...status } = await rig.status();
  assert.deepEqual(archives, []);
  assert.deepEqual(status, {
    enabled: true,
    rotation: { mode: "daily" },
    rotation_label: "daily",
    max_files: 7,
    max_file_size_mb: 100,
    json_format: false,
    async_writing: true,
    async_mode: "drop_newest",
    async_buffer_size: 16_384,
    restart_pending: [],
    overridden_by: {},
    async: {
      enabled: true,
      mode: "drop_newest",
      buffer_size: 16_384,
      buffer_depth: 0,
      high_water: 1,
      dropped_events: 0,
      written_events: 2,
    },
    log_dir: join(rig.output.path, ".."),
    current_file: { path: rig.output.path, size_bytes: readFileSync(rig.output.path).length },
    archived_count: 0,
    problem: null,
    verbosity: "silent",
    debug_logging: {
      enabled: false,
      level: "summary",
      host_filter: [],
      redact_headers: ["Authorization", "Cookie", "Set-Cookie"],
      redact_bodies: false,
    },
    traffic_events: { logged: 0, dropped: 0, waiting: 0 },
  });
});

test("a rotation on request names the archive, begins an empty file and keeps as many archives as asked for", async () => {
  await using rig = await start();
  await rig.change({ max_files: 2 });
  const names: string[] = [];
  for (const body of [{}, undefined, {}]) {
    await rig.say("line");
    const { status, json } = await rig.api.call("POST", "/api/logs/rotate", body);
    assert.equal(status, 200, JSON.stringify(json));
    const { rotated_to: path, current_file: file } = json as LogRotated;
    assert.match(path, /logs\/weir\.log\.\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d(?:\.\d+)?$/);
    assert.equal(file?.size_bytes, 0);
    assert.match(readFileSync(path, "utf8"), /line\n$/);
    names.push(path);
  }
  await rig.output.settled();
  const { archived_files: archives, archived_count: count } = await rig.status();
  assert.deepEqual(archives.map(({ path }) => path).sort(), names.slice(1).sort());
  assert.equal(count, 2);
});

test("retention and cap hold at once; rotation and form wait for a restart and say so; all are persisted", async () => {
  await using rig = await start();
  const change = { max_files: 3, max_file_size_mb: 5, rotation: { mode: "size", size_mb: 9 }, json_format: true };
  const response = await rig.change(change);
  assert.equal(response.message, "Saved; restart Weir for rotation and json_format");
  assert.deepEqual(response.restart_pending, ["rotation", "json_format"]);
  assert.deepEqual([response.rotation, response.rotation_label], [{ mode: "size", size_mb: 9 }, "size (9 MB)"]);
  assert.deepEqual(stored(rig), { log_config: change });
  assert.deepEqual(rig.api.settings.running.log_config.rotation, { mode: "daily" });
  assert.equal(rig.api.settings.running.log_config.max_files, 3);
  assert.equal((await rig.change({ rotation: "daily", json_format: false })).message, "Saved");
});

test("a change of what a flag gives is saved, and the answer names what the flag overrides at each start", async () => {
  await using rig = await start({
    "log-json": true,
    "log-max-files": "3",
    "debug-logging-level": "full",
  });
  assert.deepEqual((await rig.status()).overridden_by, {});
  const response = await rig.change({ json_format: false, rotation: "hourly" });
  assert.equal(response.message, "Saved; restart Weir for rotation; at each start a flag overrides json_format");
  assert.deepEqual([response.restart_pending, response.overridden_by], [["rotation"], { json_format: "flag" }]);
  const { overridden_by: overridden } = await rig.change({ max_files: 5, debug_logging: { level: "headers" } });
  assert.deepEqual(overridden, { max_files: "flag", json_format: "flag", "debug_logging.level": "flag" });
  const { message } = await rig.change({ json_format: true, max_files: 3, debug_logging: { level: "full" } });
  assert.equal(message, "Saved; restart Weir for rotation");
});

test("a partial change leaves everything else as it is, below debug_logging too", async () => {
  await using rig = await start();
  await rig.change({ max_files: 3, debug_logging: { level: "full", host_filter: ["*.B.test", "a.test"] } });
  const { debug_logging: debug, max_files } = await rig.change({
    debug_logging: { redact_headers: ["X-A", "x-a", "Y"] },
  });
  assert.equal(max_files, 3);
  assert.deepEqual(debug, {
    enabled: false,
    level: "full",
    host_filter: ["*.b.test", "a.test"],
    redact_headers: ["X-A", "Y"],
    redact_bodies: false,
  });
  assert.deepEqual((await rig.change({ debug_logging: { host_filter: null } })).debug_logging.host_filter, []);
});

test("a mode may stand alone with its size beside it", async () => {
  await using rig = await start();
  const rotation = async (body: object) => (await rig.change(body)).rotation;
  assert.deepEqual(await rotation({ rotation: "size", size_mb: 4 }), { mode: "size", size_mb: 4 });
  assert.deepEqual(await rotation({ size_mb: 5 }), { mode: "size", size_mb: 5 });
  assert.deepEqual(await rotation({ rotation: { mode: "size", size_mb: 6 }, size_mb: 6 }), {
    mode: "size",
    size_mb: 6,
  });
  assert.deepEqual(await rotation({ rotation: "hourly" }), { mode: "hourly" });
  assert.deepEqual(await rotation({ rotation: { mode: "never" } }), { mode: "never" });
});

test("what GET shows may be sent back and changes nothing", async () => {
  await using rig = await start();
  await rig.say("one");
  await rig.api.call("POST", "/api/logs/rotate");
  const before = await rig.status();
  const { message, ...after } = await rig.change(before);
  assert.deepEqual([message, after], ["Saved", before]);
});

test("one invalid part refuses the whole change and names itself", async () => {
  await using rig = await start();
  const before = await rig.status();
  for (const [change, path] of [
    [{ max_files: 3, rotation: { mode: "weekly" } }, "body/rotation"],
    [{ max_files: 3, rotation: "weekly" }, "body/rotation"],
    [{ max_files: 3, rotation: { mode: "size" } }, "body/rotation/size_mb"],
    [{ max_files: 3, rotation: { mode: "size", size_mb: 0 } }, "body/rotation/size_mb"],
    [{ max_files: 3, rotation: { mode: "daily", size_mb: 5 } }, "body/rotation/size_mb"],
    [{ max_files: 3, rotation: "size" }, "body/size_mb"],
    [{ max_files: 3, rotation: "size", size_mb: 0 }, "body/size_mb"],
    [{ max_files: 3, rotation: "daily", size_mb: 3 }, "body/size_mb"],
    [{ max_files: 3, size_mb: 3 }, "body/size_mb"],
    [{ max_files: 3, rotation: { mode: "size", size_mb: 3 }, size_mb: 4 }, "body/size_mb"],
    [{ max_files: -1 }, "body/max_files"],
    [{ max_file_size_mb: 0 }, "body/max_file_size_mb"],
    [{ json_format: "yes" }, "body/json_format"],
    [{ max_files: 3, debug_logging: { level: "loud" } }, "body/debug_logging/level"],
    [{ max_files: 3, debug_logging: { host_filter: ["https://x"] } }, "body/debug_logging/host_filter"],
    [{ max_files: 3, debug_logging: { redact_headers: ["a b"] } }, "body/debug_logging/redact_headers"],
    [{ max_files: 3, debug_logging: { extra: 1 } }, "body/debug_logging/extra"],
    [{ async_mode: "wait" }, "body/async_mode"],
    [{ extra: 1 }, "body/extra"],
  ] as const) {
    const { code, details } = (await rig.change(change, 400)) as unknown as {
      code: string;
      details: { path: string }[];
    };
    assert.equal(code, "VALIDATION_ERROR");
    assert.ok(
      details.some((detail) => detail.path.startsWith(path)),
      `${JSON.stringify(change)}: ${JSON.stringify(details)}`,
    );
  }
  assert.deepEqual(await rig.status(), before);
});

test("errors of a rotation concern its own mode only", async () => {
  await using rig = await start();
  for (const [rotation, path, message] of [
    [{ mode: "weekly" }, "body/rotation", 'mode must be one of "never", "hourly", "daily", "size"'],
    [{ size_mb: 5 }, "body/rotation/mode", "is required"],
    [{ mode: "size" }, "body/rotation/size_mb", "is required"],
    [{ mode: "size", size_mb: 0 }, "body/rotation/size_mb", "must be >= 1"],
    [{ mode: "daily", size_mb: 5 }, "body/rotation/size_mb", "unknown property"],
    ["weekly", "body/rotation", 'must be one of "never", "hourly", "daily", "size"'],
  ] as const) {
    const { details } = (await rig.change({ rotation }, 400)) as unknown as { details: unknown };
    assert.deepEqual(details, [{ path, message }]);
  }
});

test("without a file there is nothing to rotate, and without any file ever there is no status", async () => {
  await using rig = await start();
  assert.equal((await rig.change({ enabled: false })).current_file, null);
  assert.equal((await rig.api.call("POST", "/api/logs/rotate")).status, 409);
  assert.notEqual((await rig.change({ enabled: true })).current_file, null);
  await using bare = await startApi({ slices: (host) => [createLogsSlice(host)] });
  for (const [method, path] of [
    ["GET", "/api/logs"],
    ["PATCH", "/api/logs"],
    ["POST", "/api/logs/rotate"],
    ["GET", "/api/logs/lines"],
  ] as const) {
    assert.equal((await bare.call(method, path, method === "PATCH" ? {} : undefined)).status, 503, path);
  }
});

test("the last lines come, then those written since, across a rotation", async () => {
  await using rig = await start();
  const lines = async (query: string): Promise<LogLines> => {
    const { status, json } = await rig.api.call("GET", `/api/logs/lines${query}`);
    assert.equal(status, 200, JSON.stringify(json));
    return json as LogLines;
  };
  for (const word of ["one", "two", "three"]) await rig.say(word);
  const first = await lines("?limit=2");
  assert.deepEqual([first.lines.map((line) => line.split(" ").at(-1)), first.missed], [["two", "three"], true]);
  await rig.say("four");
  await rig.api.call("POST", "/api/logs/rotate");
  await rig.say("five");
  const second = await lines(`?cursor=${first.next_cursor}`);
  const third = await lines(`?cursor=${second.next_cursor}`);
  const words = [...second.lines, ...third.lines].map((line) => line.split(" ").at(-1));
  assert.deepEqual(words, ["four", "five"]);
  for (const query of ["?cursor=x", "?limit=0", "?limit=1001", "?path=/etc/passwd"]) {
    assert.equal((await rig.api.call("GET", `/api/logs/lines${query}`)).status, 400, query);
  }
});

test("settings of the file from an earlier start are in force, a broken one refuses the start", async () => {
  await using directory = await temporaryDirectory();
  const { loadSettings } = await import("#settings/load-settings.ts");
  const load = (file: object) => {
    writeFileSync(directory.file("config.json"), JSON.stringify(file));
    const log = { warn: () => undefined, error: () => undefined };
    return loadSettings({
      dataDir: directory.path,
      environment: { WEIR_LOG_MAX_FILES: "9" },
      flags: { "log-rotation": "SIZE:20" },
      log,
    });
  };
  const { log_config: config } = load({ log_config: { json_format: true, max_files: 2 } }).running;
  assert.deepEqual([config.json_format, config.max_files, config.rotation], [true, 9, { mode: "size", size_mb: 20 }]);
  assert.throws(() => load({ log_config: { rotation: { mode: "size" } } }), /log_config\.rotation/);
});
