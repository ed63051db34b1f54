import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { test } from "node:test";
import type { DocumentInput, Issue } from "@headworks/gateway-contract";
import { temporaryDirectory } from "@headworks/testkit";
import { serving } from "../gateway-rig.ts";
import { issuesOf, keyed, proxied, type ConsumerInput } from "./consumer-rig.ts";

type Credential = NonNullable<ConsumerInput["credentials"]>[number];
type Provider = NonNullable<DocumentInput["jwt_providers"]>[number];

const having = (name: string, ...credentials: Credential[]): ConsumerInput => ({ name, credentials });
const key = (text: string): Credential => ({ type: "api_key", key: text });
const basic = (username: string): Credential => ({ type: "basic", username, password: "basic-password" });
const hmac = (keyId: string): Credential => ({ type: "hmac", key_id: keyId, secret: "hmac-secret" });
const jwt = (issuer: string, audiences?: string[]): Credential => ({
  type: "jwt",
  issuer,
  ...(audiences && { audiences }),
});
const subject = (text: string): Credential => ({ type: "mtls", subject: text });
const print = (text: string): Credential => ({ type: "mtls", fingerprint: text });

const IDP: Provider = { name: "idp", jwks_url: "https://idp.test/keys", issuer: "https://idp.test" };
const FINGERPRINT = "ab".repeat(32);

/** Makes sure that the document is refused, so that warnings are told, too. */
const REFUSED = { policies: [{ name: "p" }, { name: "p" }] };

async function found(
  consumers: ConsumerInput[],
  providers: Provider[] = [],
  environment: Readonly<Record<string, string>> = {},
): Promise<readonly Issue[]> {
  const document: DocumentInput = {
    ...serving("api", [1]),
    routes: [proxied("any")],
    consumers,
    jwt_providers: providers,
    ...REFUSED,
  };
  const issues = await issuesOf(document, environment);
  return issues.filter(({ path }) => !path.startsWith("/policies"));
}

const shown = ({ severity, code, path }: Issue): string => `${severity} ${code} ${path}`;

test("what is wrong with credentials", async (t) => {
  const inSecond = "/consumers/1/credentials/0";
  const unasked = "warning unused";
  const cases: readonly [title: string, consumers: ConsumerInput[], providers: Provider[], issues: string[]][] = [
    [
      "different credentials are fine",
      [having("a", key("1"), key("2"), basic("u"), hmac("k")), having("b", key("3"), basic("v"), hmac("l"))],
      [],
      [],
    ],
    [
      "one key of two consumers",
      [keyed("a", "same"), keyed("b", "same")],
      [],
      [`error duplicate_credential ${inSecond}/key`],
    ],
    [
      "one key by reference and as it is",
      [keyed("a", "${KEY}"), keyed("b", "env-key")],
      [],
      [`error duplicate_credential ${inSecond}/key`],
    ],
    [
      "one key by two references",
      [keyed("a", "${KEY}"), keyed("b", "${SAME}")],
      [],
      [`error duplicate_credential ${inSecond}/key`],
    ],
    [
      "one key twice of one consumer",
      [having("a", key("${KEY}"), key("${SAME}"))],
      [],
      ["warning duplicate_credential /consumers/0/credentials/1/key"],
    ],
    [
      "a key that cannot be had",
      [keyed("a", "${MISSING}")],
      [],
      ["error secret_unresolved /consumers/0/credentials/0/key"],
    ],
    ["a key with a line feed", [keyed("a", "${LINES}")], [], ["error bad_value /consumers/0/credentials/0/key"]],
    ["a key with a space at its end", [keyed("a", "key ")], [], ["error bad_value /consumers/0/credentials/0/key"]],
    ["a key with a space inside can be sent", [keyed("a", "k e\ty")], [], []],
    [
      "a user name of two consumers",
      [having("a", basic("u")), having("b", basic("u"))],
      [],
      [`error duplicate_credential ${inSecond}/username`],
    ],
    [
      "a key id of two consumers",
      [having("a", hmac("k")), having("b", hmac("k"))],
      [],
      [`error duplicate_credential ${inSecond}/key_id`],
    ],
    ["key ids have letter case", [having("a", hmac("k")), having("b", hmac("K"))], [], []],
    [
      "a certificate of two consumers, and no listener that asks for one",
      [having("a", print(FINGERPRINT)), having("b", print(FINGERPRINT.toUpperCase().replace(/(..)(?=.)/g, "$1:")))],
      [],
      [
        `${unasked} /consumers/0/credentials/0`,
        `${unasked} ${inSecond}`,
        `error duplicate_credential ${inSecond}/fingerprint`,
      ],
    ],
    [
      "a subject of two consumers",
      [having("a", subject("n")), having("b", subject("n"))],
      [],
      [
        `${unasked} /consumers/0/credentials/0`,
        `${unasked} ${inSecond}`,
        `error duplicate_credential ${inSecond}/subject`,
      ],
    ],
    [
      "an issuer that no provider knows",
      [having("a", jwt("https://idp.test"))],
      [],
      ["error unknown_reference /consumers/0/credentials/0/issuer"],
    ],
    [
      "an issuer whose tokens all belong to a consumer",
      [having("a", jwt("https://idp.test"))],
      [{ ...IDP, consumer: "a" }],
      ["error unknown_reference /consumers/0/credentials/0/issuer"],
    ],
    ["an issuer that a provider names", [having("a", jwt("https://idp.test"))], [IDP], []],
    [
      "an issuer that a provider of any takes",
      [having("a", jwt("https://x.test"))],
      [{ name: "any", jwks_url: "https://x.test/keys" }],
      [],
    ],
    [
      "an issuer of two consumers",
      [having("a", jwt("https://idp.test")), having("b", jwt("https://idp.test"))],
      [IDP],
      [`error duplicate_credential ${inSecond}`],
    ],
    [
      "told apart by audiences",
      [
        having("a", jwt("https://idp.test", ["x"])),
        having("b", jwt("https://idp.test", ["y"])),
        having("c", jwt("https://idp.test")),
      ],
      [IDP],
      [],
    ],
    [
      "audiences of two consumers",
      [having("a", jwt("https://idp.test", ["x", "y"])), having("b", jwt("https://idp.test", ["y"]))],
      [IDP],
      [`error duplicate_credential ${inSecond}`],
    ],
    ["a name that no header can carry", [having("zoë", key("1"))], [], ["error bad_value /consumers/0/name"]],
    [
      "a name that would be a line end on the wire",
      [having("a\u010ab", key("1"))],
      [],
      ["error bad_value /consumers/0/name"],
    ],
    ["a name with a control character", [having("a\u0001b", key("1"))], [], ["error bad_value /consumers/0/name"]],
    ["a name with spaces inside", [having("Acme & Sons", key("1"))], [], []],
  ];
  const environment = { KEY: "env-key", SAME: "env-key", LINES: "env-key\nX-Forged: 1" };
  for (const [title, consumers, providers, issues] of cases) {
    await t.test(title, async () => {
      const all = await found(consumers, providers, environment);
      assert.deepEqual(all.map(shown).toSorted(), issues.toSorted());
      const texts = all.map(({ message }) => message).join("\n");
      for (const secret of ["env-key", "same", "basic-password", "hmac-secret"]) {
        assert.equal(
          new RegExp(`"${secret}|${secret}"|${secret}$`, "m").test(texts),
          false,
          `${secret} is in a message`,
        );
      }
    });
  }
});

test("what is wrong with providers of tokens", async (t) => {
  await using files = await temporaryDirectory();
  const text = files.file("text.pem");
  await writeFile(text, "-----BEGIN CERTIFICATE-----\nnothing\n-----END CERTIFICATE-----\n");
  const place = "/jwt_providers/0";
  const cases: readonly [title: string, provider: Partial<Provider>, issues: string[]][] = [
    ["nothing", {}, []],
    ["asymmetric algorithms", { algorithms: ["RS256", "PS512", "ES384", "EdDSA"] }, []],
    ["none is no signature", { algorithms: ["ES256", "none"] }, [`error bad_value ${place}/algorithms/1`]],
    ["a shared secret proves nothing", { algorithms: ["HS256"] }, [`error bad_value ${place}/algorithms/0`]],
    ["letter case of algorithms counts", { algorithms: ["rs256"] }, [`error bad_value ${place}/algorithms/0`]],
    [
      "what all objects have is no algorithm",
      { algorithms: ["constructor"] },
      [`error bad_value ${place}/algorithms/0`],
    ],
    ["plain http to elsewhere", { jwks_url: "http://idp.test/keys" }, [`warning bad_url ${place}/jwks_url`]],
    ["plain http to this machine", { jwks_url: "http://127.0.0.1:9/keys" }, []],
    ["a user in the address", { jwks_url: "https://u:p@idp.test/keys" }, [`error bad_url ${place}/jwks_url`]],
    [
      "a file that is not there",
      { trusted_ca_file: files.file("missing.pem") },
      [`error bad_file ${place}/trusted_ca_file`],
    ],
    ["a file that holds no certificate", { trusted_ca_file: text }, [`error bad_file ${place}/trusted_ca_file`]],
    [
      "a grace of more than a week",
      { retired_key_grace_secs: 604_801 },
      [`error out_of_range ${place}/retired_key_grace_secs`],
    ],
    ["a consumer that is not there", { consumer: "x" }, [`error unknown_reference ${place}/consumer`]],
  ];
  for (const [title, more, issues] of cases) {
    await t.test(title, async () => {
      const all = await found([keyed("a", "1")], [{ ...IDP, ...more }]);
      assert.deepEqual(all.map(shown), issues);
    });
  }
});

test("what is wrong with providers that are asked about tokens", async (t) => {
  type Asked = NonNullable<DocumentInput["oidc_providers"]>[number];
  const place = "/oidc_providers/0";
  const asked = { name: "idp", client_id: "x", client_secret: "asked-secret" };
  const cases: readonly [title: string, provider: Partial<Asked>, issues: string[]][] = [
    ["an endpoint", { introspection_endpoint: "https://idp.test/introspect" }, []],
    ["an issuer that names it", { issuer: "https://idp.test/realm" }, []],
    ["neither", {}, [`error required ${place}/introspection_endpoint`]],
    ["an issuer that cannot be asked", { issuer: "the one" }, [`error bad_url ${place}/issuer`]],
    ["an issuer with a query", { issuer: "https://idp.test/?a=b" }, [`error bad_url ${place}/issuer`]],
    ["an issuer that is only compared", { issuer: "the one", introspection_endpoint: "https://idp.test/" }, []],
    ["an issuer over plain http", { issuer: "http://idp.test" }, [`warning bad_url ${place}/issuer`]],
    [
      "no time to keep answers",
      { issuer: "https://idp.test", introspection_cache_ttl_s: 0 },
      [`error out_of_range ${place}/introspection_cache_ttl_s`],
    ],
    [
      "more than an hour",
      { issuer: "https://idp.test", introspection_cache_ttl_s: 3601 },
      [`error out_of_range ${place}/introspection_cache_ttl_s`],
    ],
    [
      "a secret that cannot be had",
      { issuer: "https://idp.test", client_secret: "${MISSING}" },
      [`error secret_unresolved ${place}/client_secret`],
    ],
  ];
  for (const [title, more, issues] of cases) {
    await t.test(title, async () => {
      const document: DocumentInput = {
        ...serving("api", [1]),
        routes: [proxied("any")],
        consumers: [keyed("a", "1")],
        oidc_providers: [{ ...asked, ...more }],
        ...REFUSED,
      };
      const all = (await issuesOf(document)).filter(({ path }) => !path.startsWith("/policies"));
      assert.deepEqual(all.map(shown), issues);
      assert.equal(JSON.stringify(all).includes("asked-secret"), false);
    });
  }
});

test("a route that asks for a credential that no consumer has is worth a warning", async () => {
  const shut = async (more: Partial<DocumentInput>): Promise<string[]> => {
    const routes = [proxied("any", "/", { auth_required: true })];
    const issues = await issuesOf({ ...serving("any", [1]), routes, ...REFUSED, ...more }, {});
    return issues.map(shown).filter((line) => line.endsWith("auth_required"));
  };
  assert.deepEqual(await shut({}), ["warning bad_value /routes/0/auth_required"]);
  assert.deepEqual(await shut({ consumers: [keyed("a", "1")] }), []);
});
