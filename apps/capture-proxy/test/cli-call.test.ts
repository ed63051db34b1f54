import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { lstat, open, readFile, readlink, symlink, writeFile } from "node:fs/promises";
import { after, before, describe, test } from "node:test";
import { operations } from "@headworks/capture-contract";
import type { Operation, Operations } from "@headworks/contract-kit";
import { temporaryDirectory } from "@headworks/testkit";
import { Command } from "commander";
import { addOperationCommands, operationsOfGroup } from "#cli/call.ts";
import { COMMAND_GROUPS } from "#cli/program.ts";
import { COMMAND_SHAPES, commandName } from "#cli/command-names.ts";
import { readText } from "#cli/schema-options.ts";
import { progressLine } from "#cli/transfer.ts";
import { runInside } from "./cli-rig.ts";
import type { CommandSetting, CommandResult } from "./cli-rig.ts";

const tables = operations as Readonly<Record<string, Operations>>;

describe("the command line and the contract", () => {
  test("every slice has a group, and every group a slice", () => {
    assert.deepEqual(COMMAND_GROUPS.map(({ slice }) => slice).toSorted(), Object.keys(operations).toSorted());
  });

  test("every offered operation is in one group", () => {
    const offered = Object.entries(tables).flatMap(([slice, table]) =>
      Object.entries(table)
        .filter(([, { expose }]: [string, Operation]) => expose?.cli !== false)
        .map(([name]) => `${slice}.${name}`),
    );
    const grouped = Object.keys(tables).flatMap((group) =>
      operationsOfGroup(group).map(([slice, name]) => `${slice}.${name}`),
    );
    assert.deepEqual(grouped.toSorted(), offered.toSorted());
  });

  for (const slice of Object.keys(operations)) {
    test(`every offered operation of ${slice} has exactly one subcommand; nothing else but shortcuts is there`, () => {
      const group = new Command(slice);
      addOperationCommands(group, slice, {} as never, { exitCode: 0 });
      const names = group.commands.map((command) => command.name());
      assert.equal(new Set(names).size, names.length, names.join(" "));
      const expected = operationsOfGroup(slice).flatMap(([owner, name]) => [
        commandName(owner, name),
        ...(COMMAND_SHAPES[`${owner}.${name}`]?.shortcuts ?? []).map((shortcut) => shortcut.name),
      ]);
      assert.deepEqual(names.toSorted(), expected.toSorted());
      for (const command of group.commands) {
        assert.notEqual(command.summary(), "");
        for (const option of command.options.filter(({ hidden }) => !hidden)) {
          assert.match(option.description, /^[^(]/, `${slice} ${command.name()} ${option.flags}`);
        }
        const flags = command.options
          .flatMap((option) => [option.short, option.long])
          .filter((flag) => flag !== undefined);
        assert.equal(new Set(flags).size, flags.length, `${slice} ${command.name()}: ${flags.join(" ")}`);
      }
    });
  }

  test("no exception names an operation or a property that does not exist", () => {
    for (const [key, shape] of Object.entries(COMMAND_SHAPES)) {
      const [slice = "", name = ""] = key.split(".");
      const operation = tables[slice]?.[name];
      assert.ok(operation, key);
      const known = JSON.stringify([operation.query ?? {}, operation.body ?? {}]);
      const named = [...Object.keys(shape.flags ?? {}), ...(shape.hidden ?? []), ...(shape.positional ?? [])];
      named.push(...Object.keys({ ...shape.files, ...shape.defaults }));
      for (const property of named) {
        assert.ok(known.includes(`"${property.split(".").at(-1) ?? ""}"`), `${key}: ${property}`);
      }
    }
  });

  const names: readonly (readonly [string, string, string])[] = [
    ["traffic", "listTraffic", "list"],
    ["traffic", "getTraffic", "get"],
    ["traffic", "importHar", "import-har"],
    ["sessions", "switchSession", "switch"],
    ["blocklist", "createBlockEntry", "create"],
    ["blocklist", "getBlocklistStats", "stats"],
    ["focus", "addFocusHost", "add"],
    ["export", "exportHar", "har"],
    ["config", "updateConfig", "update"],
    ["capture", "getCapture", "status"],
    ["mocks", "batchToggleMocks", "batch-toggle"],
  ];
  for (const [slice, operation, name] of names) {
    test(`${operation} is called ${slice} ${name}`, () => assert.equal(commandName(slice, operation), name));
  }
});

interface Seen {
  readonly method: string;
  readonly url: string;
  readonly type: string | undefined;
  readonly body: string;
}

describe("a command as a request", () => {
  const seen: Seen[] = [];
  let respond: (request: IncomingMessage, response: ServerResponse) => void = () => undefined;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { method = "", url = "" } = request;
      seen.push({ method, url, type: request.headers["content-type"], body: Buffer.concat(chunks).toString() });
      respond(request, response);
    });
  });
  let api = "";
  before(async () => {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    api = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => server.close());

  const call = async (
    args: readonly string[],
    setting: CommandSetting = {},
  ): Promise<CommandResult & { seen: Seen[] }> => {
    seen.length = 0;
    const result = await runInside(args, { ...setting, environment: { WEIR_API_URL: api, ...setting.environment } });
    return { ...result, seen: [...seen] };
  };
  const json = (value: unknown, status = 200, headers: Record<string, string> = {}): void => {
    respond = (_request, response) => {
      response.writeHead(status, { "content-type": "application/json", ...headers });
      response.end(value === undefined ? undefined : JSON.stringify(value));
    };
  };

  const requests: readonly (readonly [line: string, method: string, url: string, body: unknown])[] = [
    ["traffic list", "GET", "/api/traffic", undefined],
    [
      "traffic list -q status:5xx -l 5 --include-bodies",
      "GET",
      "/api/traffic?q=status%3A5xx&limit=5&include_bodies=true",
      undefined,
    ],
    ["traffic list -f host:a --no-is-passthrough", "GET", "", "usage"],
    [
      "traffic list --no-is-passthrough -s 404,5xx",
      "GET",
      "/api/traffic?status_code=404%2C5xx&is_passthrough=false",
      undefined,
    ],
    ["traffic search a&b=c", "GET", "/api/traffic?search=a%26b%3Dc", undefined],
    ["traffic get ../x", "GET", "/api/traffic/..%2Fx", undefined],
    ["traffic clear", "POST", "/api/traffic/clear", undefined],
    ["traffic clear --ids a,b --ids c", "POST", "/api/traffic/clear", { ids: ["a", "b", "c"] }],
    ["traffic note ID --notes null", "PATCH", "/api/traffic/ID", { notes: null }],
    ["traffic delete ID", "DELETE", "/api/traffic/ID", undefined],
    ["sessions create", "POST", "/api/sessions", undefined],
    ["sessions create --name X", "POST", "/api/sessions", { name: "X" }],
    ["sessions update ID --tags a,b", "PATCH", "/api/sessions/ID", { tags: ["a", "b"] }],
    [
      "blocklist create --pattern *.ads --status-code 451 --no-enabled",
      "POST",
      "/api/blocklist",
      { pattern: "*.ads", enabled: false, status_code: 451 },
    ],
    ["blocklist toggle ID", "POST", "/api/blocklist/ID/toggle", undefined],
    ["blocklist toggle ID --no-enabled", "POST", "/api/blocklist/ID/toggle", { enabled: false }],
    [
      "config update --max-requests 5 --public-ip null --upstream-proxy-port 3128",
      "PATCH",
      "/api/config",
      { public_ip: null, max_requests: 5, upstream_proxy: { port: 3128 } },
    ],
    ["capture toggle", "POST", "/api/capture/toggle", undefined],
    ["capture disable", "POST", "/api/capture/toggle", { enabled: false }],
    ["focus add example.com", "POST", "/api/focus", { pattern: "example.com" }],
    ["cert test", "POST", "/api/cert/test", undefined],
    ["metrics health", "GET", "/api/health/detailed", undefined],
    ["cert ca --format der", "GET", "/api/cert/ca?format=der", undefined],
    ["cert mobileconfig", "GET", "/api/cert/mobileconfig", undefined],
    ["cert setup", "GET", "/api/cert/setup", undefined],
    ["metrics prometheus", "GET", "/api/metrics/prometheus", undefined],
    [
      "traffic rows -s 5xx --sort duration -l 5",
      "GET",
      "/api/traffic/rows?status_code=5xx&sort=duration&limit=5",
      undefined,
    ],
    ["traffic values host --prefix api.", "GET", "/api/traffic/values?field=host&prefix=api.", undefined],
  ];
  for (const [line, method, url, body] of requests) {
    test(`weir ${line}`, async () => {
      json({});
      const result = await call(line.split(" "));
      if (body === "usage") {
        assert.deepEqual([result.code, result.seen.length], [2, 0]);
        return;
      }
      const [request] = result.seen;
      assert.deepEqual([result.code, result.stderr.replace(/^Done\n/, "")], [0, ""]);
      assert.deepEqual({ method: request?.method, url: request?.url }, { method, url });
      assert.deepEqual(request?.body === "" ? undefined : JSON.parse(request?.body ?? ""), body);
      assert.equal(request?.type, body === undefined ? undefined : "application/json");
    });
  }

  const usage: readonly (readonly [line: string, message: RegExp])[] = [
    ["traffic list --limit many", /whole number/],
    ["traffic list --limit 5000", /at most 1000/],
    ["traffic list --unknown", /unknown option.*\nSee weir traffic list --help\.\n$/],
    ["traffic lst", /Did you mean list/],
    ["traffic show", /unknown command 'show'\nSee weir traffic --help\.\n$/],
    ["traffic get", /missing required argument 'id'/],
    ["traffic body ID middle", /Allowed choices are request, response/],
    ["blocklist create", /--pattern is required/],
    ["sessions export ID -f zip", /must be one of har, session/],
    ["config update --max-requests 5 --body {", /is not JSON/],
    ["traffic list --api-url nonsense", /is not the address of a service/],
    ["traffic list --timeout 0", /seconds/],
    ["frobnicate", /unknown command.*\nSee weir --help\.\n$/],
    ['blocklist create --body "text" --pattern x', /must be a JSON object/],
    ["blocklist create --body [] --pattern x", /must be a JSON object/],
    ["traffic tail --lines 5000", /0 to 1000/],
  ];
  for (const [line, message] of usage) {
    test(`weir ${line} is refused before anything is sent`, async () => {
      const result = await call(line.split(" "));
      assert.deepEqual([result.code, result.seen.length, result.stdout], [2, 0, ""]);
      assert.match(result.stderr, message);
    });
  }

  test("--json gives the service's bytes, and a table is for people", async () => {
    json([{ id: "x", pattern: "a.b", created_at: "2026-01-01T00:00:00.000Z" }]);
    const raw = await call(["focus", "list", "--json"]);
    assert.equal(raw.stdout, '[{"id":"x","pattern":"a.b","created_at":"2026-01-01T00:00:00.000Z"}]\n');
    const before = await call(["--json", "focus", "list"]);
    assert.equal(before.stdout, raw.stdout);
    assert.equal((await call(["focus", "--json", "list"])).stdout, raw.stdout);
    const table = await call(["focus", "list"], { columns: 60 });
    assert.match(table.stdout, /Pattern.*Id/);
    assert.match(table.stdout, /a\.b {6}x/);
  });

  test("a window of rows is a table, and how many there are is said beside it", async () => {
    json({
      total: 70,
      total_complete: true,
      rows: [{ id: "x", seq: 7, method: "GET", url: "http://a/", status_code: 204 }],
    });
    const { stdout, stderr } = await call(["traffic", "rows"], { columns: 80, environment: { NO_COLOR: "1" } });
    assert.match(stdout, /# +Method +Status +URL .*\n *7 +GET +204 +http:\/\/a\/ /);
    assert.equal(stderr, "1 of 70\n");
  });

  test("a drawing among facts is left to browsers", async () => {
    json({ proxy_address: "127.0.0.1:8888", qr_svg: "<svg/>" });
    assert.equal((await call(["cert", "setup"])).stdout, "proxy_address  127.0.0.1:8888\n");
  });

  test("hostile names in an answer do not reach the terminal as control characters", async () => {
    json([{ id: "x", pattern: "a\u001b]0;owned\u0007\u009b2J", created_at: "2026-01-01T00:00:00.000Z" }]);
    for (const args of [
      ["focus", "list"],
      ["focus", "list", "--json"],
    ]) {
      const { stdout } = await call(args, { columns: 80, environment: { NO_COLOR: "1" } });
      assert.doesNotMatch(stdout, /[\x00-\x09\x0b-\x1f\x7f-\x9f]/);
      assert.match(stdout, /owned/);
    }
  });

  test("a refusal is the service's sentence with its code and details, and exit code 1", async () => {
    json(
      {
        error: "The request is not valid",
        code: "VALIDATION_ERROR",
        details: [{ path: "body/pattern", message: "is bad" }],
      },
      400,
    );
    const { code, stderr, stdout } = await call(["blocklist", "create", "--pattern", "x"]);
    assert.deepEqual([code, stdout], [1, ""]);
    assert.equal(stderr, "weir: The request is not valid (VALIDATION_ERROR)\n  body/pattern: is bad\n");
  });

  test("a detail that the sentence says already is not said twice", async () => {
    json(
      { error: "query/q: bad query", code: "VALIDATION_ERROR", details: [{ path: "query/q", message: "bad query" }] },
      400,
    );
    assert.equal((await call(["traffic", "list"])).stderr, "weir: query/q: bad query (VALIDATION_ERROR)\n");
  });

  test("a response that is not JSON, or not from Weir, is reported as such", async () => {
    respond = (_request, response) =>
      response.writeHead(502, { "content-type": "text/html" }).end("<h1>Bad gateway</h1>\nmore");
    assert.match((await call(["focus", "list"])).stderr, /The response was 502: <h1>Bad gateway<\/h1>/);
    respond = (_request, response) => response.writeHead(200).end("<h1>hello</h1>");
    assert.match((await call(["focus", "list"])).stderr, /does not respond like Weir's API/);
  });

  test("a service that does not respond in time fails the command", async () => {
    respond = () => undefined;
    const { code, stderr } = await call(["focus", "list", "--timeout", "0.2"]);
    assert.equal(code, 1);
    assert.match(stderr, /did not respond within 0.2 seconds/);
    server.closeAllConnections();
  });

  test("a body comes from the flag, a file or standard input, and flags are set on top of it", async () => {
    json({ id: "x" }, 201);
    await using directory = await temporaryDirectory();
    await writeFile(directory.file("body.json"), '{"pattern":"from-file","note":"n"}');
    const body = async (text: string, input?: string): Promise<unknown> => {
      const args = ["blocklist", "create", "--body", text, "--status-code", "404"];
      return JSON.parse((await call(args, input === undefined ? {} : { input })).seen[0]?.body ?? "null");
    };
    assert.deepEqual(await body('{"pattern":"inline"}'), { pattern: "inline", status_code: 404 });
    assert.deepEqual(await body(`@${directory.file("body.json")}`), {
      pattern: "from-file",
      note: "n",
      status_code: 404,
    });
    assert.deepEqual(await body("-", '{"pattern":"piped"}'), { pattern: "piped", status_code: 404 });
    const missing = await call(["blocklist", "create", "--body", `@${directory.file("none")}`]);
    assert.equal(missing.code, 1);
    assert.match(missing.stderr, /Cannot read/);
  });

  test("an upload is sent as it is from a file or standard input", async () => {
    json({ session_id: "s", imported_count: 1, skipped_count: 0, errors: [] });
    await using directory = await temporaryDirectory();
    await writeFile(directory.file("a.har"), '{"log":{}}');
    const fromFile = await call(["traffic", "import-har", directory.file("a.har"), "--switch", "-n", "My import"]);
    assert.deepEqual(fromFile.seen[0], {
      method: "POST",
      url: "/api/traffic/import/har?session_name=My+import&switch_session=true",
      type: "application/json",
      body: '{"log":{}}',
    });
    assert.equal((await call(["traffic", "import-har", "-"], { input: "PIPED" })).seen[0]?.body, "PIPED");
    const mocks = await call(["mocks", "import", directory.file("a.har"), "-f", "har", "--dry-run"]);
    assert.deepEqual(mocks.seen[0], {
      method: "POST",
      url: "/api/mocks/import/document?format=har&dry_run=true",
      type: "application/octet-stream",
      body: '{"log":{}}',
    });
    const folder = await call(["traffic", "import-har", directory.path]);
    assert.deepEqual([folder.code, folder.seen.length], [1, 0]);
    assert.match(folder.stderr, /is a directory/);
  });

  test("a download goes to standard output or to a file that appears when it is whole", async () => {
    respond = (_request, response) => response.writeHead(200, { "content-type": "application/json" }).end('{"log":1}');
    await using directory = await temporaryDirectory();
    const piped = await call(["export", "har"]);
    assert.deepEqual([piped.code, piped.stdout], [0, '{"log":1}']);
    const path = directory.file("out.har");
    assert.deepEqual(
      [(await call(["export", "har", "-o", path])).code, await readFile(path, "utf8")],
      [0, '{"log":1}'],
    );
    respond = (_request, response) => {
      response.writeHead(200, { "content-length": "100" });
      response.write("half", () => response.destroy());
    };
    const broken = await call(["export", "har", "-o", directory.file("broken.har")]);
    assert.equal(broken.code, 1);
    await assert.rejects(readFile(directory.file("broken.har")), { code: "ENOENT" });
  });

  test("a download takes the place of no device, pipe or link", { skip: process.platform === "win32" }, async () => {
    respond = (_request, response) => response.writeHead(200).end('{"log":1}');
    await using directory = await temporaryDirectory();
    const [pipe, file, link] = [directory.file("pipe"), directory.file("file.har"), directory.file("link.har")];
    execFileSync("mkfifo", [pipe]);
    // Both ends in one hand, so that neither side waits to be opened.
    await using both = await open(pipe, "r+");
    assert.deepEqual([(await call(["export", "har", "-o", pipe])).code, (await lstat(pipe)).isFIFO()], [0, true]);
    const { buffer, bytesRead } = await both.read(Buffer.alloc(100));
    assert.equal(buffer.toString("utf8", 0, bytesRead), '{"log":1}');
    await writeFile(file, "before");
    await symlink(file, link);
    assert.deepEqual([(await call(["export", "har", "-o", link])).code, await readlink(link)], [0, file]);
    assert.equal(await readFile(file, "utf8"), '{"log":1}');
  });

  test("captured bytes shown to a person hold no control characters, piped ones are untouched", async () => {
    const bytes = Buffer.from("a\x1b[2Jb\r\nc", "latin1");
    respond = (_request, response) => response.writeHead(200).end(bytes);
    assert.equal((await call(["traffic", "body", "ID", "response"], { columns: 80 })).stdout, "a␛[2Jb\nc\n");
    assert.equal((await call(["traffic", "body", "ID", "response"])).stdout, bytes.toString());
  });

  test("a body that is not whole says so beside its bytes, and fails where it could not be decoded", async () => {
    const cases = [
      [{ "x-body-partial": "true", "x-body-undecodable": "true" }, 1, /content coding is damaged/u],
      [
        { "x-body-partial": "false", "x-body-undecodable": "true" },
        0,
        /was written as sent: its content coding is unknown/u,
      ],
      [{ "x-body-partial": "true", "x-body-undecodable": "false" }, 0, /cut when it was stored/u],
      [{ "x-body-partial": "false", "x-body-undecodable": "false" }, 0, /^$/u],
    ] as const;
    for (const [fields, code, said] of cases) {
      respond = (_request, response) => response.writeHead(200, fields).end("half");
      const result = await call(["traffic", "body", "ID", "response", "--decoded"]);
      assert.deepEqual([result.code, result.stdout], [code, "half"]);
      assert.match(result.stderr, said);
    }
  });

  test("a snippet is printed alone, to be piped on, and cannot control a terminal", async () => {
    const text = "curl 'http://a/' \\\n  -H 'x: \u001b[2J'";
    for (const [args, response] of [
      [["export", "curl", "ID"], { curl: text }],
      [["export", "snippet", "ID"], { format: "curl", text }],
    ] as const) {
      json(response);
      assert.equal((await call(args)).stdout, `${text}\n`);
      assert.equal((await call(args, { columns: 80 })).stdout, `${text.replace("\u001b", "␛")}\n`);
      assert.equal((await call([...args, "--json"])).stdout, `${JSON.stringify(response)}\n`);
    }
  });

  test("a cut list says how much there is, a page how to go on", async () => {
    json([{ id: "x", pattern: "p", created_at: "2026-01-01T00:00:00.000Z" }], 200, { "x-total-count": "7" });
    assert.equal((await call(["focus", "list"])).stderr, "1 of 7\n");
    json({ entries: [], next_cursor: "abc" });
    assert.equal((await call(["traffic", "list", "--cursor", ""])).stderr, "More: --cursor abc\n");
  });
});

test("without a service, the message says how to start it", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  const { code, stderr } = await runInside(["traffic", "list", "--api-url", `http://127.0.0.1:${port}`]);
  assert.equal(code, 1);
  assert.equal(
    stderr,
    `weir: No Weir is running at http://127.0.0.1:${port}: start it with \`weir serve\`, or specify another address with --api-url or WEIR_API_URL\n`,
  );
});

test("credentials in the service's address are used, and printed nowhere", async () => {
  const server = createServer((request, response) => response.end(JSON.stringify([request.headers.authorization])));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const args = ["focus", "list", "--json", "--api-url"];
  const answered = await runInside([...args, `http://me:secret@127.0.0.1:${port}`]);
  assert.equal(answered.stdout, `["Basic ${Buffer.from("me:secret").toString("base64")}"]\n`);
  server.close();
  server.closeAllConnections();
  await once(server, "close");
  for (const url of [`http://me:secret@127.0.0.1:${port}`, "ftp://me:secret@x", "http://me:secret@[bad"]) {
    const { code, stderr } = await runInside([...args, url]);
    assert.notEqual(code, 0);
    assert.match(stderr, /\[REDACTED\]/);
    assert.doesNotMatch(stderr, /secret/);
  }
});

test("lists grow, null clears, choices and ranges hold", () => {
  assert.deepEqual(readText({ type: "array", items: { type: "string" } }, "a, b,,", ["x"]), ["x", "a", "b"]);
  assert.deepEqual(readText({ anyOf: [{ type: "integer" }, { type: "null" }] }, "null"), null);
  assert.deepEqual(readText({ anyOf: [{ type: "integer" }, { type: "null" }] }, "12"), 12);
  for (const [schema, text] of [
    [{ enum: ["a"] }, "b"],
    [{ type: "integer" }, "1.5"],
    [{ type: "integer" }, ""],
    [{ type: "integer" }, "1e99"],
    [{ type: "number", minimum: 0 }, "-1"],
    [{ type: "number" }, "NaN"],
  ] as const) {
    assert.throws(() => readText(schema, text), { code: "commander.invalidArgument" }, text);
  }
});

test("a progress line fits the window and never promises more than everything", () => {
  assert.match(progressLine(50, 100, 60, "sent"), /^\[(#+)( +)\]  50 %  50 B of 100 B$/);
  for (const columns of [10, 40, 80, 300]) {
    const line = progressLine(200, 100, columns, "sent");
    assert.match(line, /100 %/);
    if (columns >= 40) assert.ok(line.length < columns);
  }
  assert.equal(progressLine(2048, undefined, 80, "received"), "2.0 KiB received");
});
