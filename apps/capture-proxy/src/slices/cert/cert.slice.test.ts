import assert from "node:assert/strict";
import { createHash, X509Certificate } from "node:crypto";
import { join } from "node:path";
import { test } from "node:test";
import type { CertificateInfo } from "@headworks/capture-contract";
import { type ApiRig, type ApiRigOptions, startApi } from "../../../test/api-rig.ts";
import {
  type AuthorityStore,
  type CertSlice,
  createCertSlice,
  type InterceptionProbe,
  openAuthorityStore,
} from "./cert.slice.ts";

interface CertRig {
  readonly api: ApiRig;
  readonly slice: CertSlice;
  readonly authority: AuthorityStore;
}

async function startCert(options: ApiRigOptions = {}, probe: InterceptionProbe = async () => []): Promise<CertRig> {
  let made: Omit<CertRig, "api"> | undefined;
  const api = await startApi({
    ...options,
    slices: (host) => {
      const authority = openAuthorityStore({
        directory: join(host.dataDir, "certs"),
        nowMs: () => Date.now(),
        log: host.log,
      });
      const slice = createCertSlice(host, { authority, probe });
      made = { slice, authority };
      return [slice];
    },
  });
  assert.ok(made);
  return { api, ...made };
}

const header = (fields: readonly string[], name: string): string | undefined =>
  fields[fields.findIndex((text, index) => index % 2 === 0 && text.toLowerCase() === name) + 1];

test("the certificate is served as PEM and DER, the key by nothing", async () => {
  const { api, authority } = await startCert();
  await using _api = api;
  const pem = await fetch(`${api.url}/api/cert/ca`);
  assert.equal(pem.headers.get("content-type"), "application/x-x509-ca-cert");
  assert.equal(pem.headers.get("content-disposition"), 'attachment; filename="weir-ca.crt"');
  assert.equal(pem.headers.get("cache-control"), "no-store");
  assert.equal(await pem.text(), authority.current.certificatePem);
  const der = Buffer.from(await (await fetch(`${api.url}/api/cert/ca?format=der`)).arrayBuffer());
  assert.equal(new X509Certificate(der).fingerprint256, authority.current.fingerprintSha256);
  for (const path of ["/api/cert/ca", "/api/cert/info", "/api/cert/mobileconfig", "/api/cert/setup"]) {
    assert.doesNotMatch(await (await fetch(api.url + path)).text(), /PRIVATE KEY/);
  }
});

test("the certificate cannot be had while interception is off", async () => {
  const { api } = await startCert({ flags: { "no-https": true } });
  await using _api = api;
  const { status, json } = await api.call("GET", "/api/cert/ca");
  assert.equal(status, 404);
  assert.equal((json as { code: string }).code, "NOT_FOUND");
});

test("its facts are those of the file, and a renewal changes them", async () => {
  const { api, authority } = await startCert();
  await using _api = api;
  const info = (await api.call("GET", "/api/cert/info")).json as CertificateInfo;
  const certificate = new X509Certificate(authority.current.certificatePem);
  assert.deepEqual(info, {
    subject: authority.current.subject,
    fingerprint_sha256: certificate.fingerprint256,
    serial: certificate.serialNumber,
    not_before: certificate.validFromDate.toISOString(),
    not_after: certificate.validToDate.toISOString(),
    expires_soon: false,
    path: api.directory.file("certs", "weir-ca.pem"),
    imported: false,
  });
  const renewed = await api.call("POST", "/api/cert/renew");
  assert.equal(renewed.status, 200);
  assert.notEqual((renewed.json as CertificateInfo).fingerprint_sha256, info.fingerprint_sha256);
});

test("the profile for Apple devices holds the certificate under stable identifiers", async () => {
  const { api, authority } = await startCert();
  await using _api = api;
  const profile = await (await fetch(`${api.url}/api/cert/mobileconfig`)).text();
  const data = /<data>([\s\S]*?)<\/data>/.exec(profile)?.[1] ?? "";
  assert.equal(new X509Certificate(Buffer.from(data, "base64")).fingerprint256, authority.current.fingerprintSha256);
  assert.equal(await (await fetch(`${api.url}/api/cert/mobileconfig`)).text(), profile);
  assert.match(profile, /com\.apple\.security\.root/);
  assert.equal(new Set(profile.match(/[0-9A-F]{8}-[0-9A-F]{4}-8[0-9A-F]{3}-[89AB][0-9A-F]{3}-[0-9A-F]{12}/g)).size, 2);
});

test("the set-up data names this machine's file and addresses in every command", async () => {
  const { api } = await startCert({ proxyAddress: "http://0.0.0.0:9999", flags: { "public-ip": "192.168.7.7" } });
  await using _api = api;
  const setup = (await api.call("GET", "/api/cert/setup")).json as {
    proxy_address: string;
    local_only: boolean;
    qr_svg: string;
    platforms: { id: string; command?: string; steps: string[] }[];
    environment: { name: string; value: string }[];
  };
  assert.equal(setup.proxy_address, "http://127.0.0.1:9999");
  assert.equal(setup.local_only, false);
  assert.match(setup.qr_svg, /^<svg /);
  const ids = setup.platforms.map(({ id }) => id);
  assert.deepEqual(ids, [
    "macos",
    "windows",
    "linux-debian",
    "linux-fedora",
    "firefox",
    "chrome",
    "ios",
    "android",
    "java",
    "node",
    "python",
    "go",
    "curl",
    "git",
  ]);
  const path = api.directory.file("certs", "weir-ca.pem");
  for (const { id, command } of setup.platforms) if (command !== undefined) assert.ok(command.includes(path), id);
  const ios = setup.platforms.find(({ id }) => id === "ios");
  assert.match(ios?.steps[0] ?? "", /192\.168\.7\.7 port 9999/);
  assert.equal(setup.environment.find(({ name }) => name === "HTTPS_PROXY")?.value, "http://127.0.0.1:9999");
  assert.equal(setup.environment.find(({ name }) => name === "NODE_EXTRA_CA_CERTS")?.value, path);
});

test("the set-up host gives the page, the certificate in its forms, and nothing else", async () => {
  const { api, slice, authority } = await startCert();
  await using _api = api;
  const table: readonly (readonly [string, string, boolean, number, string])[] = [
    ["GET", "/", false, 200, "text/html; charset=utf-8"],
    ["GET", "/?utm=1", true, 200, "text/html; charset=utf-8"],
    ["HEAD", "/", false, 200, "text/html; charset=utf-8"],
    ["GET", "/cert.pem", false, 200, "application/x-x509-ca-cert"],
    ["GET", "/cert.crt", false, 200, "application/x-x509-ca-cert"],
    ["GET", "/weir.mobileconfig", false, 200, "application/x-apple-aspen-config"],
    ["GET", "/qr.svg", false, 200, "image/svg+xml"],
    ["GET", "/icon.svg", false, 200, "image/svg+xml"],
    ["GET", "/check", true, 200, "image/svg+xml"],
    ["GET", "/check", false, 404, "text/plain; charset=utf-8"],
    ["GET", "/api/traffic", true, 404, "text/plain; charset=utf-8"],
    ["GET", "/../certs/weir-ca-key.pem", true, 404, "text/plain; charset=utf-8"],
    ["POST", "/", true, 405, "text/plain; charset=utf-8"],
    ["DELETE", "/cert.pem", true, 405, "text/plain; charset=utf-8"],
  ];
  for (const [method, path, secure, status, type] of table) {
    const response = slice.handleMagicHost({ method, path, secure });
    assert.equal(response.status, status, `${method} ${path}`);
    assert.equal(header(response.fields, "content-type"), type, path);
    assert.equal(header(response.fields, "content-length"), String(response.body.length), path);
    assert.equal(header(response.fields, "x-content-type-options"), "nosniff");
    assert.doesNotMatch(response.body.toString("latin1"), /PRIVATE KEY/);
  }
  assert.deepEqual(
    slice.handleMagicHost({ method: "GET", path: "/cert.crt", secure: false }).body,
    authority.current.certificateDer,
  );
});

test("the page needs no script, allows itself only its own style, and fits both places it is shown", async () => {
  const { api, slice, authority } = await startCert();
  await using _api = api;
  const response = slice.handleMagicHost({ method: "GET", path: "/", secure: false });
  const onProxy = response.body.toString();
  const onApi = slice.setupPage.render();
  for (const html of [onProxy, onApi.html]) {
    assert.doesNotMatch(html, /<script|javascript:|\son\w+=/i);
    assert.doesNotMatch(html, /\sstyle="/);
    assert.ok(html.includes(authority.current.fingerprintSha256));
    assert.match(html, /<img src="https:&#47;&#47;weir&#47;check"|<img src="https:\/\/weir\/check"/);
    assert.match(html, /Without it, the browser does not use the proxy yet/);
    assert.match(html, /name="viewport"/);
    assert.match(html, /The proxy listens on this machine only/);
    assert.doesNotMatch(html, /On other devices|Scan to open/);
    const style = /<style>([\s\S]*?)<\/style>/.exec(html)?.[1] ?? "";
    assert.ok(onApi.contentSecurityPolicy.includes(`'sha256-${createHash("sha256").update(style).digest("base64")}'`));
  }
  assert.equal(header(response.fields, "content-security-policy"), onApi.contentSecurityPolicy);
  assert.match(onApi.html, /href="\/api\/cert\/ca\?format=der"/);
  assert.match(onProxy, /href="\/cert\.crt"/);
});

test("other devices get instructions only if the proxy listens for them", async () => {
  const { api, slice } = await startCert({
    proxyAddress: "http://0.0.0.0:9999",
    flags: { "public-ip": "192.168.7.7" },
  });
  await using _api = api;
  const { html } = slice.setupPage.render();
  assert.match(html, /On other devices<\/dt><dd><code>192\.168\.7\.7<\/code> port <code>9999/);
  assert.match(html, /Scan to open/);
  assert.doesNotMatch(html, /this machine only/);
});

test("text that came from outside is inert on the page", async () => {
  const { api, slice } = await startCert({ proxyAddress: "http://0.0.0.0:8888" });
  await using _api = api;
  const hostile = { ...api.host.settings, shownHost: () => '"><script>alert(1)</script>' };
  const { renderSetupPage } = await import("./setup-page.ts");
  const { setupData } = await import("./setup-guide.ts");
  const authority = openAuthorityStore({
    directory: api.directory.file("certs"),
    nowMs: () => Date.now(),
    log: api.host.log,
  });
  const data = setupData({ addresses: api.host.addresses, clock: api.host.clock, settings: hostile }, authority);
  const html = renderSetupPage(data, { pem: "/", der: "/", mobileConfig: "/", check: "/" });
  assert.doesNotMatch(html, /<script>/);
  assert.match(html, /&#60;script/);
  assert.ok(slice);
});

test("the test reports each step and whether all of them passed", async () => {
  const asked: unknown[] = [];
  const steps = [{ name: "Connect to the proxy", ok: true, detail: "yes" }];
  const { api, authority } = await startCert({}, async ({ proxyAddress, url, caPem }) => {
    asked.push(proxyAddress, url, caPem);
    return steps;
  });
  await using _api = api;
  const first = (await api.call("POST", "/api/cert/test")).json as { ok: boolean; steps: { name: string }[] };
  assert.equal(first.ok, true);
  assert.deepEqual(
    first.steps.map(({ name }) => name),
    ["HTTPS interception is on", "Connect to the proxy"],
  );
  assert.deepEqual(asked, ["http://127.0.0.1:8888", "https://weir/check", authority.current.certificatePem]);
  api.settings.patch({ intercept_https: false });
  assert.equal(((await api.call("POST", "/api/cert/test")).json as { ok: boolean }).ok, false);
});
