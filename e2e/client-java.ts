import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { peer, runProcess } from "@headworks/testkit";
import type { Bench, ClientCase } from "./client-rig.ts";

const java = peer("java");
const keytool = peer("keytool");
const skip = java.skip === false ? keytool.skip : java.skip;

const PASSWORD = "changeit";
/** For programs that run for about a second. */
const SMALL = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"];

/** Java's own client with default settings; the program requests each given URL. */
const PROGRAM = `import java.net.URI;
import java.net.http.*;

public class Client {
  public static void main(String[] arguments) throws Exception {
    var body = arguments.length > 2 ? HttpRequest.BodyPublishers.ofString(arguments[2]) : HttpRequest.BodyPublishers.noBody();
    var request = HttpRequest.newBuilder(URI.create(arguments[0])).method(arguments[1], body).build();
    var response = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofByteArray());
    System.out.write(response.body());
    System.out.flush();
  }
}
`;

interface Prepared {
  /** Directory of the class. */
  readonly folder: string;
  readonly trustStore: string;
}

let prepared: Promise<Prepared> | undefined;

/** Compiles once: `java` compiles a source file at each run, which takes longer than everything else. */
async function prepare({ directory, weir }: Bench): Promise<Prepared> {
  const source = directory.file("Client.java");
  await writeFile(source, PROGRAM);
  const trustStore = directory.file("trust.p12");
  const compiler = ["-m", "jdk.compiler/com.sun.tools.javac.Main", "-d", directory.path, source];
  const store = ["-keystore", trustStore, "-storetype", "PKCS12", "-storepass", PASSWORD];
  for (const [path, args] of [
    [java.path, [...SMALL, ...compiler]],
    [keytool.path, ["-importcert", "-noprompt", "-alias", "weir", "-file", weir.caFile, ...store]],
  ] as const) {
    const { code, stdout, stderr } = await runProcess(path, args, { timeoutMs: 60_000 });
    assert.equal(code, 0, stdout + stderr);
  }
  return { folder: directory.path, trustStore };
}

const running =
  (method: string, ...body: string[]): ClientCase["run"] =>
  async (bench, url, trusts) => {
    const { folder, trustStore } = await (prepared ??= prepare(bench));
    const { weir } = bench;
    const settings = {
      "https.proxyHost": "127.0.0.1",
      "https.proxyPort": String(weir.proxyPort),
      "http.proxyHost": "127.0.0.1",
      "http.proxyPort": String(weir.proxyPort),
      // Loopback names are proxied only with this property.
      "http.nonProxyHosts": "",
      ...(trusts
        ? {
            "javax.net.ssl.trustStore": trustStore,
            "javax.net.ssl.trustStoreType": "PKCS12",
            "javax.net.ssl.trustStorePassword": PASSWORD,
          }
        : {}),
    };
    const properties = Object.entries(settings).map(([name, value]) => `-D${name}=${value}`);
    return await runProcess(java.path, [...SMALL, ...properties, "-cp", folder, "Client", url, method, ...body], {
      timeoutMs: 60_000,
    });
  };

const cases: ClientCase[] = [
  { name: "Java HttpClient", path: "/java?x=1", run: running("GET") },
  { name: "Java HttpClient over plain HTTP", path: "/java-plain", plain: true, run: running("GET") },
  {
    name: "Java HttpClient with a body",
    path: "/java-post",
    method: "POST",
    body: Buffer.from("sent by Java"),
    run: running("POST", "sent by Java"),
  },
];
export const javaCases: readonly ClientCase[] = cases.map((each) => ({ ...each, skip }));
