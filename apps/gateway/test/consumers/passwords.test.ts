import assert from "node:assert/strict";
import { test } from "node:test";
import { startOrigin } from "@headworks/testkit";
import { serving, startGateway } from "../gateway-rig.ts";
import { assertNotLogged, keyed, OPEN_AND_CLOSED, seenValues } from "./consumer-rig.ts";

const base64 = (text: string, encoding: BufferEncoding = "utf8"): string =>
  Buffer.from(text, encoding).toString("base64");
const basic = (user: string, password: string): string => `Authorization: Basic ${base64(`${user}:${password}`)}`;

test("authentication of a request by user name and password", async (t) => {
  await using origin = await startOrigin();
  await using gateway = await startGateway(
    {
      ...serving("api", [origin.port]),
      routes: OPEN_AND_CLOSED,
      consumers: [
        { name: "acme", credentials: [{ type: "basic", username: "ann", password: "${ANN}" }] },
        { name: "zoo", credentials: [{ type: "basic", username: "zoë", password: "schlüssel:2" }] },
        keyed("keyed", "good-key"),
      ],
    },
    { environment: { ANN: "ann-password" } },
  );
  const cases: readonly [title: string, path: string, fields: readonly string[], status: number, consumer?: string][] =
    [
      ["a right password is its consumer's", "/closed", [basic("ann", "ann-password")], 200, "acme"],
      [
        "the scheme has no letter case",
        "/closed",
        [basic("ann", "ann-password").replace("Basic", "bASIC")],
        200,
        "acme",
      ],
      [
        "several spaces may follow the scheme",
        "/closed",
        [basic("ann", "ann-password").replace("Basic ", "Basic   ")],
        200,
        "acme",
      ],
      ["padding may be missing", "/closed", [basic("ann", "ann-password").replaceAll("=", "")], 200, "acme"],
      ["text is UTF-8, and a colon may be in a password", "/closed", [basic("zoë", "schlüssel:2")], 200, "zoo"],
      [
        "the same in Latin-1 is another name",
        "/open",
        [`Authorization: Basic ${base64("zoë:schlüssel:2", "latin1")}`],
        401,
      ],
      ["a wrong password is refused", "/open", [basic("ann", "ann-passwort")], 401],
      ["an empty password is refused", "/open", [basic("ann", "")], 401],
      ["an unknown user is refused", "/open", [basic("bob", "ann-password")], 401],
      ["an unknown user without a password is refused", "/open", [basic("bob", "")], 401],
      ["an empty user without a password is refused", "/open", [basic("", "")], 401],
      ["another's password is refused", "/open", [basic("ann", "schlüssel:2")], 401],
      ["no colon, no credential", "/open", [`Authorization: Basic ${base64("ann")}`], 401],
      ["what is not base64 is refused", "/open", ["Authorization: Basic ann:ann-password"], 401],
      ["the scheme alone is refused", "/open", ["Authorization: Basic"], 401],
      ["two lines are refused, both good", "/open", [basic("ann", "ann-password"), basic("ann", "ann-password")], 401],
      [
        "two lines are refused, one for the upstream",
        "/open",
        ["Authorization: Digest x", basic("ann", "ann-password")],
        401,
      ],
      ["another scheme is the upstream's business", "/open", ["Authorization: Bearer token"], 200],
      ["and identifies no consumer", "/closed", ["Authorization: Bearer token"], 401],
      ["an API key comes first", "/closed", ["X-API-Key: good-key", basic("ann", "wrong")], 200, "keyed"],
      ["also when it is bad", "/open", ["X-API-Key: bad-key", basic("ann", "ann-password")], 401],
    ];
  for (const [title, path, fields, status, consumer] of cases) {
    await t.test(title, async () => {
      const response = await gateway.send({ path, fields });
      assert.equal(response.status, status);
      if (status === 401) {
        const challenges = response.headers
          .filter(([name]) => /^www-authenticate$/i.test(name))
          .map(([, value]) => value);
        assert.deepEqual(challenges, ['ApiKey realm="gateway"', 'Basic realm="gateway", charset="UTF-8"']);
        return;
      }
      const request = origin.requests.at(-1);
      assert.deepEqual(seenValues(request, "x-consumer-name"), consumer === undefined ? [] : [consumer]);
      const passed = fields.filter((field) => /^authorization: bearer/i.test(field)).map((field) => field.slice(15));
      assert.deepEqual(seenValues(request, "authorization"), passed, "passwords stay here, the rest passes");
    });
  }
  assertNotLogged(gateway, ["ann-pass", "schlüssel", base64("ann:ann-password"), "good-key", "bad-key"]);
});
