import { copyFileSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline/promises";
import { type Command, Option } from "commander";
import { type CertificateInfo, certOperations } from "@headworks/capture-contract";
import { ApiFailure } from "@headworks/contract-kit/client";
import { makeDirectorySync } from "@headworks/files";
import { AuthorityError, CertificateAuthority } from "@headworks/tls-authority";
import { defaultDataPaths, fileProblem, resolveCertificateDirectory, resolveDataDir } from "#settings/data-paths.ts";
import { apiAddress, type ApiAddress, callJson } from "./api-connection.ts";
import { globalOptions } from "./global-options.ts";
import { CommandFailure, EXIT, type Invocation, type OfflineAuthority, type Outcome } from "./invocation.ts";
import { renderPairs, timeText } from "./table.ts";
import { shellQuoted } from "./terminal.ts";

const ALL: readonly NodeJS.Platform[] = ["linux", "darwin", "win32"];

interface CaOptions {
  readonly dataDir?: string;
  readonly certPath?: string;
  readonly json?: boolean;
  readonly apiUrl?: string;
  readonly timeout?: string;
  readonly der?: boolean;
  readonly output?: string;
  readonly yes?: boolean;
  readonly all?: boolean;
  readonly undo?: boolean;
}

type CaAction = (invocation: Invocation, options: CaOptions, words: readonly string[]) => Promise<void> | void;

/** Adds `weir ca …`: the CA of a data directory, whether or not the service runs. */
export function addCaCommands(group: Command, invocation: Invocation, outcome: Outcome): void {
  const add = (text: string, summary: string, action: CaAction): Command => {
    const command = group.command(text).summary(summary).description(summary);
    command
      .option("--data-dir <path>", "The data directory (env WEIR_DATA_DIR)")
      .option("-c, --cert-path <directory>", "Directory of the CA, if not in the data directory (env WEIR_CERT_PATH)");
    command.action(async () => {
      await action(invocation, command.optsWithGlobals<CaOptions>(), command.args);
      outcome.exitCode = EXIT.ok;
    });
    return command;
  };
  add("path", "Print the path of the CA certificate (PEM)", showPath);
  add("show", "Subject, validity and fingerprint", show).option("--json", "Print JSON");
  add("fingerprint", "Print the SHA-256 fingerprint", showFingerprint);
  add("export", "Write the certificate to standard output or a file", exportCertificate)
    .option("--der", "Binary DER instead of PEM")
    .option("-o, --output <file>", "Write to a file");
  add("import", "Import a CA made elsewhere; its key must not be encrypted", importFiles)
    .argument("<certificate>", "PEM file of the CA certificate, optionally followed by its issuers")
    .argument("<key>", "PEM file of its private key");
  const renewal = add("renew", "Replace the CA with a new one, which every client must trust again", renew).option(
    "-y, --yes",
    "Do not ask for confirmation",
  );
  for (const option of globalOptions()) if (option.long !== "--json") renewal.addOption(option);
  add("install-help", "Commands that make this system, browsers and Java trust the CA", installHelp)
    .addOption(new Option("--undo", "Commands that remove the trust"))
    .option("--all", "For all systems, not only this one");
}

function dataDirOf({ environment }: Invocation, options: CaOptions): string {
  return resolveDataDir({ flag: options.dataDir, environment, platform: process.platform, homeDir: homedir() });
}

/** The directory of the CA. Throws {@link CommandFailure} with a sentence. */
function directoryOf(invocation: Invocation, options: CaOptions): string {
  const { environment } = invocation;
  const dataDir = dataDirOf(invocation, options);
  const flags = options.certPath === undefined ? {} : { certPath: options.certPath };
  try {
    return resolveCertificateDirectory({ flags, environment, dataDir });
  } catch (error) {
    throw new CommandFailure(EXIT.usage, (error as Error).message, { cause: error });
  }
}

/** Overwriting the key would make its certificate useless to everything that trusts it. */
function refuseOwnFile(path: string, invocation: Invocation, options: CaOptions): void {
  const dataDir = dataDirOf(invocation, options);
  const authority = authorityPaths(directoryOf(invocation, options));
  const problem = fileProblem(path, { ...defaultDataPaths(dataDir), dataDir }, Object.values(authority));
  if (problem !== undefined) throw new CommandFailure(EXIT.usage, `${path} ${problem}`);
}

async function open(invocation: Invocation, options: CaOptions): Promise<OfflineAuthority> {
  const directory = directoryOf(invocation, options);
  try {
    return await invocation.parts.openAuthority(directory);
  } catch (error) {
    throw new CommandFailure(EXIT.failure, (error as Error).message, { cause: error });
  }
}

const showPath: CaAction = async (invocation, options) => {
  invocation.stdout.write(`${(await open(invocation, options)).path}\n`);
};

const showFingerprint: CaAction = async (invocation, options) => {
  invocation.stdout.write(`${(await open(invocation, options)).fingerprint}\n`);
};

const show: CaAction = async (invocation, options) => {
  const authority = await open(invocation, options);
  const { stdout } = invocation;
  if (options.json === true) {
    const { path, subject, fingerprint, notBefore, notAfter } = authority;
    stdout.write(
      `${JSON.stringify({ subject, fingerprint_sha256: fingerprint, not_before: notBefore.toISOString(), not_after: notAfter.toISOString(), path })}\n`,
    );
    return;
  }
  const pairs: [string, string][] = [
    ["Subject", authority.subject],
    ["Valid", `${timeText(authority.notBefore.toISOString())} to ${timeText(authority.notAfter.toISOString())}`],
    ["SHA-256", authority.fingerprint],
    ["File", authority.path],
  ];
  stdout.write(renderPairs(pairs, stdout));
};

const exportCertificate: CaAction = async (invocation, options) => {
  const authority = await open(invocation, options);
  const bytes = options.der === true ? authority.certificateDer : Buffer.from(authority.certificatePem);
  if (options.output !== undefined && options.output !== "-") {
    refuseOwnFile(options.output, invocation, options);
    try {
      writeFileSync(options.output, bytes, { mode: 0o644 });
    } catch (error) {
      throw new CommandFailure(EXIT.failure, `Cannot write ${options.output}: ${(error as Error).message}`, {
        cause: error,
      });
    }
    return;
  }
  if (options.der === true && invocation.stdout.isTty) {
    throw new CommandFailure(EXIT.usage, "DER is binary: specify a file with -o, or use a pipe");
  }
  invocation.stdout.stream.write(bytes);
};

const importFiles: CaAction = (invocation, options, [certificateFile = "", keyFile = ""]) => {
  const directory = directoryOf(invocation, options);
  const stamp = new Date().toISOString().replace(/[-:]|\.\d+/g, "");
  const authority = importAuthority(directory, certificateFile, keyFile, stamp);
  invocation.stdout.write(`${authority.subject}\nSHA-256 ${authority.fingerprintSha256}\n`);
  invocation.stderr.write("The CA is imported. A running service uses it after a restart.\n");
};

const renew: CaAction = async (invocation, options) => {
  const { stdout, stderr } = invocation;
  stderr.write(
    `${stderr.style("yellow", "Every client and device that trusts the current CA must trust the new one before its HTTPS works again.")}\n`,
  );
  if (options.yes !== true && !(await isConfirmed(invocation))) {
    throw new CommandFailure(EXIT.failure, "Nothing was changed; use --yes to skip the confirmation");
  }
  const address = apiAddress(options, invocation.environment);
  const running = await runningCertificate(address);
  if (running?.path === authorityPaths(directoryOf(invocation, options)).certificate) {
    // The service holds the CA in memory; it must make the new one itself.
    const { value } = await callJson(address, certOperations.renewCertificate, {});
    stdout.write(`${(value as CertificateInfo).fingerprint_sha256}\n`);
    return;
  }
  stdout.write(`${(await open(invocation, options)).renew().fingerprint}\n`);
};

async function runningCertificate(address: ApiAddress): Promise<CertificateInfo | undefined> {
  try {
    return (await callJson(address, certOperations.getCertificateInfo, {})).value as CertificateInfo;
  } catch (error) {
    if (error instanceof ApiFailure) return undefined;
    throw error;
  }
}

async function isConfirmed({ stdin, stderr }: Invocation): Promise<boolean> {
  if (!stdin.isTTY) return false;
  const lines = createInterface({ input: stdin, output: stderr.stream });
  try {
    return /^y(es)?$/i.test((await lines.question("Create a new CA? [y/N] ")).trim());
  } finally {
    lines.close();
  }
}

const installHelp: CaAction = async (invocation, options) => {
  const { stdout } = invocation;
  const { path, fingerprint } = await open(invocation, options);
  const guides = trustGuides(path).filter(
    (guide) => options.all === true || guide.platforms.includes(process.platform),
  );
  const lines = guides.map(
    (guide) => `${stdout.style("bold", guide.name)}\n  ${options.undo === true ? guide.undo : guide.trust}\n`,
  );
  const heading = options.undo === true ? "" : `The CA ${path}\nSHA-256 ${fingerprint}\n\n`;
  const ending =
    "Firefox: Settings, Privacy & Security, Certificates, View Certificates, Authorities.\nOne program only, without trusting anything system-wide: weir run -- PROGRAM\n";
  stdout.write(`${heading}${lines.join("\n")}\n${ending}`);
};

/** How to make one trust store trust the CA, and how to undo that. */
interface TrustGuide {
  readonly id: string;
  readonly name: string;
  readonly trust: string;
  readonly undo: string;
  /** Operating systems for which it is shown without `--all`. */
  readonly platforms: readonly NodeJS.Platform[];
}

/** Commands for each trust store. `path` is the PEM file. */
export function trustGuides(path: string): TrustGuide[] {
  const file = shellQuoted(path);
  return [
    {
      id: "debian",
      name: "Debian, Ubuntu, Alpine",
      platforms: ["linux"],
      trust: `sudo cp ${file} /usr/local/share/ca-certificates/weir-ca.crt && sudo update-ca-certificates`,
      undo: "sudo rm /usr/local/share/ca-certificates/weir-ca.crt && sudo update-ca-certificates --fresh",
    },
    {
      id: "fedora",
      name: "Fedora, RHEL, SUSE",
      platforms: ["linux"],
      trust: `sudo trust anchor --store ${file}`,
      undo: `sudo trust anchor --remove ${file}`,
    },
    {
      id: "arch",
      name: "Arch Linux",
      platforms: ["linux"],
      trust: `sudo trust anchor --store ${file} && sudo update-ca-trust`,
      undo: `sudo trust anchor --remove ${file} && sudo update-ca-trust`,
    },
    {
      id: "macos",
      name: "macOS",
      platforms: ["darwin"],
      trust: `sudo security add-trusted-cert -d -r trustRoot -k /Library/Keychains/System.keychain ${file}`,
      undo: `sudo security remove-trusted-cert -d ${file}`,
    },
    {
      id: "windows",
      name: "Windows (this user)",
      platforms: ["win32"],
      trust: `certutil -user -addstore Root "${path}"`,
      undo: `certutil -user -delstore Root "Weir CA"`,
    },
    {
      id: "chrome-linux",
      name: "Chrome and Chromium on Linux (package libnss3-tools)",
      platforms: ["linux"],
      trust: `certutil -d "sql:$HOME/.pki/nssdb" -A -t C,, -n "Weir CA" -i ${file}`,
      undo: `certutil -d "sql:$HOME/.pki/nssdb" -D -n "Weir CA"`,
    },
    {
      id: "java",
      name: "Java (all programs of this JDK)",
      platforms: ALL,
      trust: `keytool -importcert -noprompt -cacerts -storepass changeit -alias weir-ca -file ${file}`,
      undo: "keytool -delete -cacerts -storepass changeit -alias weir-ca",
    },
  ];
}

export function authorityPaths(directory: string): {
  readonly certificate: string;
  readonly key: string;
  /** Holds the fingerprint of the CA that was imported last; a renewal leaves it, and it means nothing from then on. */
  readonly imported: string;
} {
  return {
    certificate: join(directory, "weir-ca.pem"),
    key: join(directory, "weir-ca-key.pem"),
    imported: join(directory, "weir-ca-imported.txt"),
  };
}

/**
 * Replaces the CA of a directory with one made elsewhere; the old files are kept beside it. Nothing changes unless the
 * files are a usable CA and its key. Throws {@link CommandFailure} with a sentence.
 */
export function importAuthority(
  directory: string,
  certificateFile: string,
  keyFile: string,
  stamp: string,
): CertificateAuthority {
  const certificatePem = readPem(certificateFile);
  const keyPem = readPem(keyFile);
  const authority = load(certificatePem, keyPem);
  const paths = authorityPaths(directory);
  makeDirectorySync(dirname(paths.key));
  // Whole files first, renames after: an interruption leaves the old pair, or a pair that the start refuses with a sentence.
  const certificate = writeAside(paths.certificate, certificatePem);
  const key = writeAside(paths.key, keyPem);
  renameSync(writeAside(paths.imported, `${authority.fingerprintSha256}\n`), paths.imported);
  for (const path of [paths.key, paths.certificate]) {
    if (existsSync(path)) copyFileSync(path, path.replace(/\.pem$/, `-${stamp}.pem`));
  }
  renameSync(key, paths.key);
  renameSync(certificate, paths.certificate);
  return authority;
}

function load(certificatePem: string, keyPem: string): CertificateAuthority {
  try {
    return CertificateAuthority.load({ certificatePem, keyPem });
  } catch (error) {
    if (!(error instanceof AuthorityError)) throw error;
    throw new CommandFailure(EXIT.failure, error.message, { cause: error });
  }
}

function readPem(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new CommandFailure(EXIT.failure, `Cannot read ${path}: ${(error as Error).message}`, { cause: error });
  }
}

function writeAside(path: string, text: string): string {
  const temporary = `${path}.${process.pid}.tmp`;
  rmSync(temporary, { force: true });
  writeFileSync(temporary, text, { mode: 0o600, flag: "wx", flush: true });
  return temporary;
}
