import { open } from "node:fs/promises";
import { join, resolve } from "node:path";
import { makeDirectory } from "@headworks/files";
import { AuthorityError, CertificateAuthority } from "@headworks/tls-authority";
import { EXIT, type Invocation } from "./invocation.ts";

/**
 * `sluice certs DIR`: creates a development CA, a certificate for the admin API on localhost, and an operator's
 * certificate. Files are private and never overwritten. Prints the matching document settings.
 */
export async function certs(
  directory: string,
  { name }: { readonly name: string },
  { stdout, stderr }: Invocation,
): Promise<number> {
  // An unset shell variable would otherwise mean the current directory.
  if (directory === "") {
    stderr.write("sluice: the directory is an empty string; use . for the current one\n");
    return EXIT.warnings;
  }
  const folder = resolve(directory);
  try {
    const files = makeFiles(name);
    await makeDirectory(folder);
    for (const [file, text] of files) await writeNew(join(folder, file), text);
  } catch (error) {
    stderr.write(`sluice: ${failureText(error, folder)}\n`);
    return EXIT.failure;
  }
  stdout.write(instructions(folder));
  return EXIT.ok;
}

/** The CA first: its file marks that the directory is in use. */
function makeFiles(name: string): readonly (readonly [file: string, text: string])[] {
  const authority = CertificateAuthority.create({ commonName: "Sluice development CA", organization: "Sluice" });
  const server = authority.issueLeaf({ dns: ["localhost"], ip: ["127.0.0.1", "::1"] });
  const operator = authority.issueLeaf({ dns: [name] }, { purpose: "client" });
  return [
    ["ca-key.pem", authority.keyPem()],
    ["ca.pem", authority.certificatePem],
    ["server-key.pem", server.keyPem],
    ["server.pem", server.chainPem],
    ["operator-key.pem", operator.keyPem],
    ["operator.pem", operator.certificatePem],
  ];
}

async function writeNew(path: string, text: string): Promise<void> {
  const file = await open(path, "wx", 0o600);
  try {
    await file.writeFile(text);
  } finally {
    await file.close();
  }
}

function failureText(error: unknown, folder: string): string {
  if (error instanceof AuthorityError) return error.message;
  const { code, path } = error as NodeJS.ErrnoException;
  if (code === "EEXIST") return `${path ?? folder} already exists; use another folder, or remove the old files`;
  return `${path ?? folder} cannot be written (${code ?? String(error)})`;
}

function instructions(folder: string): string {
  const file = (name: string): string => JSON.stringify(join(folder, name));
  return `The folder ${folder} contains a CA, a server certificate and an operator certificate, readable by this user only.

Add this to the configuration:

admin:
  bind: 127.0.0.1:2019
  tls:
    cert_file: ${file("server.pem")}
    key_file: ${file("server-key.pem")}
    client_ca_file: ${file("ca.pem")}

Then call the gateway:

curl --cacert ${quoted(join(folder, "ca.pem"))} --cert ${quoted(join(folder, "operator.pem"))} --key ${quoted(join(folder, "operator-key.pem"))} https://localhost:2019/health

Or with sluice:

export GATEWAY_ADMIN=https://localhost:2019 GATEWAY_ADMIN_CA=${quoted(join(folder, "ca.pem"))} GATEWAY_ADMIN_CERT=${quoted(join(folder, "operator.pem"))} GATEWAY_ADMIN_KEY=${quoted(join(folder, "operator-key.pem"))}
sluice status
`;
}

/** Quotes a word for the shell. */
function quoted(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
