import { writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { createInterface } from "node:readline/promises";
import { Option } from "commander";
import type { Command } from "commander";
import { certOperations } from "@headworks/capture-contract";
import type { CertificateInfo } from "@headworks/capture-contract";
import { ApiFailure } from "@headworks/contract-kit/client";
import { resolveDataDir } from "#settings/data-dir.ts";
import { defaultPlaces, resolveCertificateDirectory } from "#settings/data-places.ts";
import { fileProblem } from "#settings/own-places.ts";
import { apiAddress, callJson } from "./api-connection.ts";
import type { ApiAddress } from "./api-connection.ts";
import { authorityPaths, importAuthority } from "./authority-files.ts";
import { CommandFailure, EXIT } from "./exit-codes.ts";
import { globalOptions } from "./global-options.ts";
import type { Invocation, OfflineAuthority, Outcome } from "./invocation.ts";
import { timeText } from "./present-values.ts";
import { renderPairs } from "./table.ts";
import { trustGuides } from "./trust-guide.ts";

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
      .option("-c, --cert-path <directory>", "The CA's directory, if it is elsewhere (env WEIR_CERT_PATH)");
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
  add("import", "Use a CA made elsewhere; its key must not be encrypted", importFiles)
    .argument("<certificate>", "PEM file of the CA certificate; its issuers may follow in it")
    .argument("<key>", "PEM file of its private key");
  const renewal = add("renew", "Make a new CA; every client must trust it anew", renew).option(
    "-y, --yes",
    "Do not ask",
  );
  for (const option of globalOptions()) if (option.long !== "--json") renewal.addOption(option);
  add("install-help", "Commands that make this system, browsers and Java trust the CA", installHelp)
    .addOption(new Option("--undo", "Commands that take the trust back"))
    .option("--all", "For every system, not only this one");
}

function dataDirOf({ environment }: Invocation, options: CaOptions): string {
  return resolveDataDir({ flag: options.dataDir, environment, platform: process.platform, homeDir: homedir() });
}

/** Where the CA lies. Throws {@link CommandFailure} with a sentence. */
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

/** A key that is written over is gone with everything that trusts its certificate. */
function refuseOwnFile(path: string, invocation: Invocation, options: CaOptions): void {
  const dataDir = dataDirOf(invocation, options);
  const authority = authorityPaths(directoryOf(invocation, options));
  const problem = fileProblem(path, { ...defaultPlaces(dataDir), dataDir }, Object.values(authority));
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
    throw new CommandFailure(EXIT.usage, "DER is binary: name a file with -o, or pipe it on");
  }
  invocation.stdout.stream.write(bytes);
};

const importFiles: CaAction = (invocation, options, [certificateFile = "", keyFile = ""]) => {
  const directory = directoryOf(invocation, options);
  const stamp = new Date().toISOString().replace(/[-:]|\.\d+/g, "");
  const authority = importAuthority(directory, certificateFile, keyFile, stamp);
  invocation.stdout.write(`${authority.subject}\nSHA-256 ${authority.fingerprintSha256}\n`);
  invocation.stderr.write("The CA is in place. A running service takes it over when it is started again.\n");
};

const renew: CaAction = async (invocation, options) => {
  const { stdout, stderr } = invocation;
  stderr.write(
    `${stderr.style("yellow", "Every client and device that trusts the present CA must trust the new one before its HTTPS works again.")}\n`,
  );
  if (options.yes !== true && !(await isConfirmed(invocation))) {
    throw new CommandFailure(EXIT.failure, "Nothing was changed; --yes makes a new CA without asking");
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
    return /^y(es)?$/i.test((await lines.question("Make a new CA? [y/N] ")).trim());
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
