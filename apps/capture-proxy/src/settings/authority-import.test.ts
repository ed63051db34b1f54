import assert from "node:assert/strict";
import { resolve } from "node:path";
import { test } from "node:test";
import { readAuthorityImport } from "./authority-import.ts";
import { StartupError } from "./settings.ts";

const none = { certificateFlag: undefined, keyFlag: undefined, environment: {} };

test("a CA made elsewhere is named by flags or by the environment, both files together", () => {
  assert.equal(readAuthorityImport(none), undefined);
  assert.equal(readAuthorityImport({ ...none, environment: { WEIR_CA_CERT_FILE: "" } }), undefined);
  assert.deepEqual(readAuthorityImport({ ...none, certificateFlag: "ca.pem", keyFlag: "/k.pem" }), {
    certificateFile: resolve("ca.pem"),
    keyFile: "/k.pem",
  });
  const environment = { SERVICE_CA_CERT_FILE: "/c", WEIR_CA_KEY_FILE: "/k", SERVICE_CA_KEY_FILE: "/other" };
  assert.deepEqual(readAuthorityImport({ ...none, environment }), { certificateFile: "/c", keyFile: "/k" });
  assert.deepEqual(readAuthorityImport({ ...none, certificateFlag: "/flag", environment }), {
    certificateFile: "/flag",
    keyFile: "/k",
  });
});

test("one file without the other stops the start", () => {
  assert.throws(() => readAuthorityImport({ ...none, certificateFlag: "/c" }), StartupError);
  assert.throws(() => readAuthorityImport({ ...none, environment: { WEIR_CA_KEY_FILE: "/k" } }), StartupError);
});
