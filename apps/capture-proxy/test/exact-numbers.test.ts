import assert from "node:assert/strict";
import { after, test } from "node:test";
import { proxyClient } from "@headworks/testkit";
import { runInside } from "./cli-rig.ts";
import { bytesOf, startOrigin, startReplayRig } from "./replay-rig.ts";

const cleanups: (() => unknown)[] = [];
const cleanup = (one: () => unknown): void => void cleanups.push(one);
after(async () => {
  for (const one of cleanups.reverse()) await one();
});

/** Numbers that a double would change. */
const ID = "17478252242305210114";
const PRICE = "12345678901234567890.50";
const BODY = `{"id":${ID},"price":${PRICE},"one":1.0,"large":1e400,"zero":-0}`;

const rig = await startReplayRig(cleanup);
const origin = await startOrigin(cleanup, async (incoming, response) => {
  const body = (await bytesOf(incoming)).toString();
  response.writeHead(200, { "content-type": "application/json" });
  response.end(
    incoming.url === "/echo" ? body : incoming.url === "/next" ? BODY.replace(ID, `${ID.slice(0, -1)}5`) : BODY,
  );
});

/** Calls the API with a body as text, as a client in any language would. */
async function send(method: string, path: string, json?: string): Promise<string> {
  const init = json === undefined ? {} : { headers: { "content-type": "application/json" }, body: json };
  const response = await fetch(`${rig.proxy.addresses.api}/api${path}`, { method, ...init });
  const text = await response.text();
  assert.ok(response.ok, `${method} ${path}: ${text}`);
  return text;
}

async function through(path: string, body?: string): Promise<string> {
  const client = proxyClient(Number(new URL(rig.proxy.addresses.proxy).port));
  const response = await client.fetch({
    url: `${origin}${path}`,
    ...(body === undefined ? {} : { method: "POST", body, headers: [["content-type", "application/json"]] }),
  });
  return response.body.toString();
}

const weir = (...args: string[]) => runInside([...args, "--api-url", rig.proxy.addresses.api]);

test("a search by json() finds numbers by all of their digits and by their value", async () => {
  const id = await rig.capture(`${origin}/found`);
  const cases: readonly (readonly [query: string, isFound: boolean])[] = [
    [`json(resp,$.id):${ID}`, true],
    [`json(resp,$.id):=${ID}`, true],
    [`json(resp,$.id):${ID.slice(0, -1)}5`, false],
    ["json(resp,$.id):17478252242305210000", false],
    ["json(resp,$.id):>17000000000", true],
    ["json(resp,$.price):12345678901234567890.5", true],
    ["json(resp,$.one):1", true],
    ["json(resp,$.one):1.0", true],
    ["json(resp,$.one):1..2", true],
    ["json(resp,$.large):>1", true],
    ["json(resp,$.zero):0", true],
    ["json(resp,$.one):!=1", false],
  ];
  for (const [query, isFound] of cases) {
    const found = JSON.parse(await send("GET", `/traffic?q=${encodeURIComponent(query)}`)) as { id: string }[];
    assert.deepEqual(
      found.map((entry) => entry.id),
      isFound ? [id] : [],
      query,
    );
  }
  const range = `json(resp,$.id):1..${ID}`;
  const refused = await rig.call<{ error: string }>("GET", `/traffic?q=${encodeURIComponent(range)}`);
  assert.match(refused.json.error, /numbers of at most 16 digits/);
});

test("a condition keeps the digits of its value: shown, counted, stored and matched", async () => {
  const condition = (last: string): string =>
    `{"type":"json_path","path":"$.id","value":${ID.slice(0, -1)}${last},"side":"response"}`;
  const rewrite = (last: string): string =>
    `{"name":"n","condition":${condition(last)},"direction":"response","rewrites":[{"type":"set_header","name":"X-Last","value":"${last}"}]}`;
  for (const last of ["4", "5"]) await send("POST", "/rewrites", rewrite(last));
  const last = async (): Promise<unknown> => {
    const client = proxyClient(Number(new URL(rig.proxy.addresses.proxy).port));
    return (await client.fetch(`${origin}/found`)).header("x-last");
  };
  assert.equal(await last(), "4");
  const shown = await send("GET", "/rewrites");
  assert.ok(shown.includes(`"value":${ID},`), shown);
  const counted = async (text: string): Promise<number> =>
    (JSON.parse(await send("POST", "/traffic/match-preview", `{"condition":${text}}`)) as { matched: number }).matched;
  assert.ok((await counted(condition("4"))) > 0);
  assert.equal(await counted(condition("5")), 0);
  const kept = await send("GET", "/persistence/export");
  await rig.restart();
  assert.equal(await last(), "4");
  assert.ok((await send("GET", "/rewrites")).includes(`"value":${ID},`));
  await send("POST", "/persistence/import?mode=replace", kept);
  assert.equal(await last(), "4");
  for (const { id } of JSON.parse(shown) as { id: string }[]) await send("DELETE", `/rewrites/${id}`);
});

test("merge patches and JSON patches write the numbers that were given and keep the others", async () => {
  const patches = [
    ['{"type":"json_merge","patch":{"new":98765432109876543210,"f":2.50}}', `,"new":98765432109876543210,"f":2.50}`],
    [
      '{"type":"json_patch","patch":[{"op":"test","path":"/id","value":17478252242305210114.0},{"op":"add","path":"/new","value":1e400}]}',
      `,"new":1e400}`,
    ],
  ] as const;
  for (const [action, end] of patches) {
    const rule = JSON.parse(
      await send(
        "POST",
        "/rewrites",
        `{"name":"p","condition":{"type":"all"},"direction":"response","rewrites":[${action}]}`,
      ),
    ) as { id: string };
    assert.equal(await through("/found"), `${BODY.slice(0, -1)}${end}`);
    await send("DELETE", `/rewrites/${rule.id}`);
  }
});

test("numbers that the API itself asks for may be written in any way", async () => {
  const made = await send(
    "POST",
    "/mocks",
    `{"name":"m","priority":1e1,"condition":{"type":"port","port":${new URL(origin).port}.0},"response_config":{"type":"single","response":{"status_code":2.0e2,"headers":{},"body":"mocked"}}}`,
  );
  const { id } = JSON.parse(made) as { id: string };
  assert.equal((JSON.parse(await send("GET", `/mocks/${id}`)) as { priority: number }).priority, 10);
  assert.equal(await through("/mocked"), "mocked");
  await send("DELETE", `/mocks/${id}`);
});

test("a template fills in numbers as they were sent", async () => {
  const response = {
    status_code: 200,
    headers: {},
    body: "{{request.body.id}} {{request.body.list}} {{request.body.id.text}}",
    template_enabled: true,
  };
  const rule = {
    name: "t",
    condition: { type: "path_pattern", pattern: "/template" },
    response_config: { type: "single", response },
  };
  const { id } = JSON.parse(await send("POST", "/mocks", JSON.stringify(rule))) as { id: string };
  assert.equal(await through("/template", `{"id":${ID},"list":[1.0,-0]}`), `${ID} [1.0,-0] `);
  await send("DELETE", `/mocks/${id}`);
});

test("mocks made of an OpenAPI document answer with its numbers, in JSON and in YAML", async () => {
  const yaml = `openapi: 3.0.3
paths:
  /made:
    get:
      responses:
        "200":
          headers: { X-Id: { example: ${ID} } }
          content: { application/json: { schema: { properties: { id: { example: ${ID} }, n: { type: integer, minimum: 5.0 } } }, example: { id: ${ID}, one: 1.0, word: yes } } }
`;
  const json = `{"openapi":"3.1.0","paths":{"/made":{"get":{"responses":{"200":{"content":{"application/json":{"example":{"id":${ID},"one":1.0,"word":"yes"}}}}}}}}}`;
  for (const data of [JSON.stringify(yaml), JSON.stringify(json), json]) {
    const { ids } = JSON.parse(await send("POST", "/mocks/import", `{"format":"openapi","data":${data}}`)) as {
      ids: string[];
    };
    assert.equal(await through("/made"), `{\n  "id": ${ID},\n  "one": 1.0,\n  "word": "yes"\n}`);
    for (const id of ids) await send("DELETE", `/mocks/${id}`);
  }
});

test("the export of mocks keeps digits when it is imported again", async () => {
  const condition = `{"type":"json_path","path":"$.id","value":${ID},"side":"request"}`;
  const rule = `{"name":"e","condition":${condition},"response_config":{"type":"single","response":{"status_code":200,"headers":{},"body":"x"}}}`;
  const { id } = JSON.parse(await send("POST", "/mocks", rule)) as { id: string };
  const exported = await send("GET", "/mocks/export");
  await send("DELETE", `/mocks/${id}`);
  await send("POST", "/mocks/import", `{"format":"json","data":${JSON.stringify(exported)}}`);
  await send("POST", "/mocks/import", `{"format":"json","data":${exported}}`);
  const list = await send("GET", "/mocks");
  assert.equal(list.split(`"value":${ID}`).length, 3, list);
  for (const each of JSON.parse(list) as { id: string }[]) await send("DELETE", `/mocks/${each.id}`);
});

test("weir diff tells long numbers apart, and prints them as they were sent", async () => {
  const [left, right] = [await rig.capture(`${origin}/found`), await rig.capture(`${origin}/next`)];
  const { stdout } = await weir("diff", left, right);
  assert.match(stdout, /- \/id: 17478252242305210114\n\+ \/id: 17478252242305210115\n/);
  const json = (await weir("diff", left, right, "--json")).stdout;
  assert.match(json, /"left": ?17478252242305210114/);
});

test("the command line sends the numbers of --body as they are written", async () => {
  const condition = `{"type":"json_path","path":"$.id","value":${ID}}`;
  const body = `{"name":"c","condition":${condition},"response_config":{"type":"single","response":{"status_code":200,"headers":{},"body":"x"}}}`;
  const { stdout, stderr } = await weir("mocks", "create-advanced", "--body", body, "--json");
  assert.match(stdout, /"id"/, stderr);
  const { id } = JSON.parse(stdout) as { id: string };
  assert.match(await send("GET", `/mocks/${id}`), new RegExp(`"value":${ID}`));
  assert.match((await weir("mocks", "get", id)).stdout, new RegExp(ID));
  await send("DELETE", `/mocks/${id}`);
});
