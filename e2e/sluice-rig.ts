import { readFileSync } from "node:fs";
import { rename, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { DocumentInput } from "@headworks/gateway-contract";
import { runProcess, spawnProcess, temporaryDirectory } from "@headworks/testkit";
import type { Exit, SpawnedProcess, TemporaryDirectory } from "@headworks/testkit";
import { CertificateAuthority } from "@headworks/tls-authority";
// Also removes the proxy variables of the developer's shell.
import { Cleanups } from "./rig.ts";

export { Cleanups };

const MAIN = fileURLToPath(new URL("../apps/gateway/bin/sluice.js", import.meta.url));

/** Node options of the program's first line, so that tests run it as users do. */
const SHIPPED_NODE_OPTIONS = (readFileSync(MAIN, "utf8").split("\n", 1)[0] ?? "")
  .split(" ")
  .filter((word) => word.startsWith("--"));

/** For {@link startSluice}. */
export interface SluiceOptions {
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** Sluice in a process of its own, accessed only from outside. */
export interface Sluice extends AsyncDisposable {
  readonly pid: number;
  readonly process: SpawnedProcess;
  /** The document's file; {@link write} replaces it. */
  readonly file: string;
  readonly adminUrl: string;
  /** Port of the listener with this name. */
  port(listener: string): number;
  /** Replaces the document as deployment tools do, by renaming another file. */
  write(document: DocumentInput | string): Promise<void>;
  /** Waits for a log line with this code; `after` is the number of such lines to skip. */
  logged(code: string, after?: number): Promise<void>;
  /** The number of log lines with this code. */
  countOf(code: string): number;
  stop(signal?: NodeJS.Signals): Promise<Exit>;
}

/** Runs one command of `sluice` to its end. */
export async function runSluice(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Exit> {
  return await runProcess(process.execPath, [...SHIPPED_NODE_OPTIONS, MAIN, ...args], { env });
}

/** Starts `sluice serve` with the document and resolves when it listens. Listeners should use port 0. */
export async function startSluice(document: DocumentInput | string, options: SluiceOptions = {}): Promise<Sluice> {
  const directory = await temporaryDirectory();
  const file = directory.file(typeof document === "string" ? "gateway.yaml" : "gateway.json");
  const write = async (next: DocumentInput | string): Promise<void> => {
    await writeFile(`${file}.new`, typeof next === "string" ? next : JSON.stringify(next));
    await rename(`${file}.new`, file);
  };
  await write(document);
  const child = await spawnProcess(
    process.execPath,
    [...SHIPPED_NODE_OPTIONS, MAIN, "serve", "--config", file, "--json", ...(options.args ?? [])],
    { env: { GATEWAY_ADMIN_DEV: "1", ...options.env } },
  );
  const end = async (signal?: NodeJS.Signals): Promise<Exit> => {
    const exit = await child.stop(signal, 20_000);
    await directory.remove();
    return exit;
  };
  try {
    const [line] = await child.waitForOutput(/^\{.*"listeners".*\}$/m, 60_000);
    const facts = JSON.parse(line) as { listeners: { name: string; port: number }[]; admin: string | null };
    const countOf = (code: string): number => child.stdout().split(`"code":"${code}"`).length - 1;
    return {
      pid: child.pid,
      process: child,
      file,
      adminUrl: facts.admin ?? "",
      port: (listener) => facts.listeners.find(({ name }) => name === listener)?.port ?? 0,
      write,
      countOf,
      logged: async (code, after = 0) => {
        await child.waitForOutput(new RegExp(`(?:"code":"${code}"[^]*?){${after + 1}}`), 20_000);
      },
      stop: end,
      [Symbol.asyncDispose]: async () => void (await end()),
    };
  } catch (error) {
    await end("SIGKILL");
    throw error;
  }
}

/** Certificates of one CA, in files. */
export interface Certificates extends AsyncDisposable {
  readonly directory: TemporaryDirectory;
  readonly caFile: string;
  /** Writes `<file>.pem` and `<file>.key` for these names, each by renaming. */
  issue(file: string, names: readonly string[]): Promise<{ readonly cert_file: string; readonly key_file: string }>;
}

/** Creates a CA and a directory for its certificates. */
export async function certificates(): Promise<Certificates> {
  const directory = await temporaryDirectory();
  const authority = CertificateAuthority.create({ commonName: "Listeners of the end-to-end tests" });
  const put = async (name: string, text: string): Promise<string> => {
    await writeFile(directory.file(`${name}.new`), text);
    await rename(directory.file(`${name}.new`), directory.file(name));
    return directory.file(name);
  };
  return {
    directory,
    caFile: await put("ca.pem", authority.certificatePem),
    issue: async (file, names) => {
      const leaf = authority.issueLeaf({ dns: [...names], ip: ["127.0.0.1"] });
      const cert = await put(`${file}.pem`, leaf.chainPem);
      return { cert_file: cert, key_file: await put(`${file}.key`, leaf.keyPem) };
    },
    [Symbol.asyncDispose]: async () => await directory.remove(),
  };
}

/** One route for everything, to one HTTP/1.1 server. */
export function servingAll(port: number, more: Partial<DocumentInput> = {}): DocumentInput {
  return {
    listeners: [{ name: "plain", address: "127.0.0.1", port: 0 }],
    admin: { bind: "127.0.0.1:0" },
    upstreams: [{ name: "origin", endpoints: [{ address: "127.0.0.1", port }] }],
    services: [{ name: "origin", upstream: "origin" }],
    routes: [
      {
        name: "all",
        service: "origin",
        match: { path: { type: "prefix", value: "/" } },
        action: { type: "proxy" },
      },
    ],
    ...more,
  };
}
