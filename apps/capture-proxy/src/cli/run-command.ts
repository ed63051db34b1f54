import { spawn } from "node:child_process";
import { accessSync, constants, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { constants as systemConstants, homedir, tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { getCACertificates } from "node:tls";
import type { Command } from "commander";
import {
  captureOperations,
  type CaptureStatus,
  exportOperations,
  type TrafficEntry,
  trafficOperations,
  type TrafficSummary,
} from "@headworks/capture-contract";
import { ApiFailure } from "@headworks/contract-kit/client";
import { callApi, callJson, shownUrl } from "./api-connection.ts";
import { CA_VARIABLES, clientEnvironment, type TrustPaths } from "./client-environment.ts";
import { CommandFailure, EXIT } from "./exit-codes.ts";
import type { Invocation } from "./invocation.ts";
import { sizeText } from "./present-values.ts";
import { present } from "./present.ts";
import { type Capture, findCapture } from "./run-capture.ts";
import { RunSignals } from "./run-signals.ts";
import { addSettingOptions, settingFlags } from "./serve-options.ts";
import { visibleText } from "./terminal.ts";
import { saveResponse } from "./transfer.ts";

const DATA = "1.2.840.113549.1.7.1";

const CERTIFICATE_BAG = "1.2.840.113549.1.12.10.1.3";

const X509_CERTIFICATE = "1.2.840.113549.1.9.22.1";

const FRIENDLY_NAME = "1.2.840.113549.1.9.20";

/** Java trusts a certificate without a key only if it has this attribute. */
const TRUSTED_KEY_USAGE = "2.16.840.1.113894.746875.1.1";

const ANY_EXTENDED_KEY_USAGE = "2.5.29.37.0";

const sequence = (...content: readonly Uint8Array[]): Buffer => der(0x30, ...content);

const set = (...content: readonly Uint8Array[]): Buffer => der(0x31, ...content);

const octets = (...content: readonly Uint8Array[]): Buffer => der(0x04, ...content);

const explicit = (...content: readonly Uint8Array[]): Buffer => der(0xa0, ...content);

/** Rows of the table of `--summary`. */
const SHOWN_ROWS = 1000;

/** Where systems keep their roots in one file, in the order in which Go looks. */
const SYSTEM_BUNDLES = [
  "/etc/ssl/certs/ca-certificates.crt",
  "/etc/pki/tls/certs/ca-bundle.crt",
  "/etc/ssl/ca-bundle.pem",
  "/etc/pki/tls/cacert.pem",
  "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
  "/etc/ssl/cert.pem",
];

/** The options of `weir run`. */
export interface RunOptions {
  readonly apiUrl?: string;
  readonly timeout?: string;
  readonly dataDir?: string;
  readonly isolated?: boolean;
  readonly session?: string;
  readonly har?: string;
  readonly summary?: boolean;
  readonly direct?: string;
}

/** Adds the flags of `weir run`. */
export function addRunOptions(command: Command): void {
  command
    .argument("<command>", "The program to run")
    .argument("[arguments...]", "Its arguments")
    .passThroughOptions()
    .option(
      "--api-url <url>",
      "URL of the service to capture with, if it is running (default http://127.0.0.1:3001; env WEIR_API_URL)",
    )
    .option("--timeout <seconds>", "Seconds to wait for a response of that service (default 30; env WEIR_TIMEOUT)")
    .option("--isolated", "Start a separate proxy for this run, even if a service is running")
    .option("--data-dir <path>", "Directory for the captured traffic; implies --isolated")
    .option("--session <name>", "Name of the session for the captured traffic")
    .option("--har <file>", "Write the captured traffic as HAR")
    .option("--summary", "Print a table of the exchanges on standard error at the end")
    .option("--direct <hosts>", "Comma list of hosts that bypass the proxy");
  addSettingOptions(command);
  for (const option of command.options) if (!SHOWN.has(option.long ?? "")) option.hidden = true;
}

const SHOWN = new Set([
  "--api-url",
  "--timeout",
  "--isolated",
  "--data-dir",
  "--session",
  "--har",
  "--summary",
  "--direct",
  "--upstream-ca",
  "--upstream-insecure",
]);

/** `weir run`: captures what one program sends; resolves to the program's exit code, or 128 + n when signal n cut it short. */
export async function run(invocation: Invocation, command: Command): Promise<number> {
  const signals = new RunSignals(invocation.heldSignals);
  try {
    const code = await captured(invocation, command, signals);
    return signals.exitCode ?? code;
  } catch (error) {
    // What fails after such a signal fails because of it.
    if (signals.exitCode !== undefined) return signals.exitCode;
    throw error;
  } finally {
    signals.release();
  }
}

async function captured(invocation: Invocation, command: Command, signals: RunSignals): Promise<number> {
  const options = command.optsWithGlobals<RunOptions>();
  const [program = "", ...programArguments] = command.args;
  if (options.har !== undefined) refuseUnwritable(options.har);
  const capture = await findCapture(invocation, options, settingFlags(command), program, signals.cut);
  try {
    await sayWhatIsNotRecorded(capture, invocation, signals.cut);
    signals.cut.throwIfAborted();
    const trust = capture.caPem === undefined ? undefined : writeTrustFiles(capture.caPem, invocation.environment);
    try {
      const environment = clientEnvironment(invocation.environment, {
        trust,
        proxyUrl: capture.proxyUrl,
        apiUrl: capture.address.baseUrl,
        noProxy: options.direct ?? "",
      });
      const code = await runProgram(program, programArguments, environment, signals);
      await report(capture, options, invocation, signals.cut);
      return code;
    } finally {
      trust?.remove();
    }
  } finally {
    await end(capture, invocation);
  }
}

/** Checked before the program runs, not after an hour of it. */
function refuseUnwritable(path: string): void {
  try {
    accessSync(dirname(resolve(path)), constants.W_OK);
  } catch (error) {
    throw new CommandFailure(EXIT.failure, `Cannot write ${path}: ${(error as Error).message}`, { cause: error });
  }
}

/** Also reported early: with capture off nothing is recorded. */
async function sayWhatIsNotRecorded({ address }: Capture, { stderr }: Invocation, signal: AbortSignal): Promise<void> {
  const { value } = await callJson(address, captureOperations.getCapture, { signal });
  if ((value as CaptureStatus).mode !== "passthrough") return;
  stderr.write(
    `weir: Capture is off, so the program's traffic is not recorded; switch it on with \`weir capture enable --api-url ${shownUrl(address)}\`\n`,
  );
}

/** A failed report does not change the program's exit code; the error goes to standard error. */
async function report(
  capture: Capture,
  options: RunOptions,
  invocation: Invocation,
  signal: AbortSignal,
): Promise<void> {
  try {
    await reportRun(capture, options, invocation, signal);
  } catch (error) {
    if (options.har !== undefined || signal.aborted) throw error;
    // Ending the run calls the same service, and reports that it is unreachable.
    if (!(error instanceof ApiFailure && error.code === "UNREACHABLE")) complain(invocation, error);
  }
}

/** Ends the capture; as in {@link report}, an error does not change the exit code. */
async function end(capture: Capture, invocation: Invocation): Promise<void> {
  try {
    await capture.end();
  } catch (error) {
    complain(invocation, error);
  }
}

function complain({ stderr }: Invocation, error: unknown): void {
  stderr.write(`weir: ${visibleText((error as Error).message)}\n`);
}

/** Runs the program on our own standard streams; resolves to its exit code, 128 + n when signal n ended it. */
async function runProgram(
  program: string,
  programArguments: readonly string[],
  environment: Record<string, string | undefined>,
  signals: RunSignals,
): Promise<number> {
  const child = spawn(program, programArguments, { stdio: "inherit", env: environment, windowsHide: true });
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  signals.passTo(child);
  child.once("error", (error: NodeJS.ErrnoException) => {
    signals.passTo(undefined);
    reject(startProblem(program, error));
  });
  child.once("exit", (code, signal) => {
    signals.passTo(undefined);
    resolve(code ?? EXIT.signalBase + (signal === null ? 0 : systemConstants.signals[signal]));
  });
  return await promise;
}

function startProblem(program: string, error: NodeJS.ErrnoException): CommandFailure {
  if (error.code === "ENOENT") {
    return new CommandFailure(EXIT.commandNotFound, `There is no program ${JSON.stringify(program)}`, { cause: error });
  }
  return new CommandFailure(EXIT.notExecutable, `${JSON.stringify(program)} cannot be run: ${error.message}`, {
    cause: error,
  });
}

/** The same files in a directory of their own. */
interface TrustFiles extends TrustPaths {
  readonly directory: string;
  remove(): void;
}

/** Writes the files to a directory that only this user can read. `remove` deletes it; it is also deleted if writing fails. */
export function writeTrustFiles(caPem: string, environment: Readonly<Record<string, string | undefined>>): TrustFiles {
  const directory = mkdtempSync(join(tmpdir(), "weir-run-"));
  const remove = (): void => rmSync(directory, { recursive: true, force: true });
  try {
    return { directory, ...writtenFiles(directory, caPem, environment), remove };
  } catch (error) {
    remove();
    throw error;
  }
}

function writtenFiles(
  directory: string,
  caPem: string,
  environment: Readonly<Record<string, string | undefined>>,
): TrustPaths {
  const own = certificatesOf(caPem);
  const users = CA_VARIABLES.flatMap((name) => certificatesOf(readIfThere(environment[name])));
  const all = unique([...own, ...users, ...systemRoots()]);
  const write = (name: string, content: string | Uint8Array): string => {
    const path = join(directory, name);
    writeFileSync(path, content, { mode: 0o600, flag: "wx" });
    return path;
  };
  const bundle = write("roots-and-weir-ca.pem", pemText(all));
  return {
    bundle,
    extra: write("weir-ca.pem", pemText(unique([...own, ...users]))),
    javaStore: write("java-trust-store.p12", javaTrustStore(all.map((text) => Buffer.from(text, "base64")))),
    wgetrc: write(
      "wgetrc",
      `${readIfThere(environment["WGETRC"] ?? join(homedir(), ".wgetrc"))}\nca_certificate = ${bundle}\n`,
    ),
  };
}

function systemRoots(): string[] {
  for (const path of SYSTEM_BUNDLES) {
    const found = certificatesOf(readIfThere(path));
    if (found.length > 0) return found;
  }
  const listed = certificatesOf(getCACertificates("system").join("\n"));
  return listed.length > 0 ? listed : certificatesOf(getCACertificates("bundled").join("\n"));
}

function readIfThere(path: string | undefined): string {
  if (path === undefined || path === "") return "";
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

/** The certificates of a PEM text as base64 without line breaks. */
function certificatesOf(pem: string): string[] {
  const blocks = pem.matchAll(/-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----([^-]*)-----END/g);
  return Array.from(blocks, ([, base64 = ""]) => base64.replace(/\s+/g, ""));
}

function unique(texts: readonly string[]): string[] {
  return [...new Set(texts)];
}

function pemText(certificates: readonly string[]): string {
  return certificates
    .map((text) => `-----BEGIN CERTIFICATE-----\n${text.replace(/.{64}(?=.)/g, "$&\n")}\n-----END CERTIFICATE-----\n`)
    .join("");
}

/** Writes the requested reports of a run; on a terminal, also a line with totals and location. */
async function reportRun(
  capture: Capture,
  options: RunOptions,
  invocation: Invocation,
  signal: AbortSignal,
): Promise<void> {
  const { stderr } = invocation;
  const isAsked = options.har !== undefined || options.summary === true;
  if (!isAsked && !stderr.isTty) return;
  if (!capture.hasOwnSession) {
    stderr.write(`${stderr.style("dim", `weir: captured${place(capture, options)}`)}\n`);
    return;
  }
  await capture.settle(signal);
  const query = { session_id: capture.sessionId };
  if (options.har !== undefined) {
    await saveResponse(
      await callApi(capture.address, exportOperations.exportHar, { query, signal }),
      options.har,
      invocation,
    );
  }
  const summary = (await callJson(capture.address, trafficOperations.summarizeTraffic, { query, signal }))
    .value as TrafficSummary;
  if (options.summary === true) {
    const { value } = await callJson(capture.address, trafficOperations.listTraffic, {
      query: { ...query, limit: SHOWN_ROWS },
      signal,
    });
    stderr.write(present((value as TrafficEntry[]).toReversed(), "TrafficEntry", stderr));
  }
  stderr.write(stderr.style("dim", `${totals(summary)}${place(capture, options)}`) + "\n");
}

function totals({ total, errors, request_bytes: sent, response_bytes: received }: TrafficSummary): string {
  const count = total === 1 ? "1 exchange" : `${total} exchanges`;
  const failures = errors === 0 ? "" : `, ${errors} with errors`;
  return `weir: ${count}${failures}, ${sizeText(sent)} sent, ${sizeText(received)} received`;
}

function place(capture: Capture, options: RunOptions): string {
  if (!capture.isOwn) {
    return `; session ${visibleText(capture.sessionName ?? capture.sessionId)} at ${shownUrl(capture.address)}`;
  }
  if (options.har !== undefined) return `; written to ${visibleText(options.har)}`;
  if (capture.isKept) return `; kept in ${visibleText(options.dataDir ?? "")}`;
  return options.summary === true ? "" : "; not kept (see --har, --summary, --data-dir, or start `weir serve`)";
}

/**
 * A PKCS #12 file (RFC 7292) of trusted certificates (DER), as Java's `PKCS12` key store reads it without a password:
 * certificates are public, so nothing is encrypted, and without a password there is no integrity code either.
 */
export function javaTrustStore(certificates: readonly Uint8Array[]): Buffer {
  const bags = certificates.map((certificate, index) => certificateBag(certificate, `trusted-${index}`));
  const safeContents = sequence(...bags);
  const authenticatedSafe = sequence(dataContent(safeContents));
  return sequence(der(0x02, Buffer.from([3])), dataContent(authenticatedSafe));
}

function dataContent(content: Uint8Array): Buffer {
  return sequence(derObjectId(DATA), explicit(octets(content)));
}

function certificateBag(certificate: Uint8Array, alias: string): Buffer {
  const bag = sequence(derObjectId(X509_CERTIFICATE), explicit(octets(certificate)));
  const name = Buffer.from(alias, "utf16le").swap16();
  const attributes = set(
    sequence(derObjectId(FRIENDLY_NAME), set(der(0x1e, name))),
    sequence(derObjectId(TRUSTED_KEY_USAGE), set(derObjectId(ANY_EXTENDED_KEY_USAGE))),
  );
  return sequence(derObjectId(CERTIFICATE_BAG), explicit(bag), attributes);
}

/** One DER element: tag, definite length, content. */
export function der(tag: number, ...content: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(content);
  return Buffer.concat([Buffer.from([tag]), derLength(body.length), body]);
}

/** An object identifier from its dotted form. */
export function derObjectId(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split(".").map(Number);
  return der(0x06, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]));
}

function derLength(length: number): Buffer {
  if (length < 0x80) return Buffer.from([length]);
  const bytes: number[] = [];
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256);
  return Buffer.from([0x80 + bytes.length, ...bytes]);
}

function base128(value: number): number[] {
  const bytes = [value % 128];
  for (let rest = Math.floor(value / 128); rest > 0; rest = Math.floor(rest / 128)) bytes.unshift(128 + (rest % 128));
  return bytes;
}
