import { resolve } from "node:path";
import { setVariable } from "./data-paths.ts";
import { StartupError } from "./settings.ts";

/** PEM files of a CA made elsewhere. */
export interface AuthorityImport {
  readonly certificateFile: string;
  readonly keyFile: string;
}

/**
 * The CA to use instead of our own: `--ca-cert-file` and `--ca-key-file`, or `WEIR_CA_CERT_FILE` and
 * `WEIR_CA_KEY_FILE` (also as `SERVICE_…`). These are no settings, because a user who may change settings over the API must
 * not choose files of this machine to be read. Throws {@link StartupError} when one of the two is missing.
 */
export function readAuthorityImport(sources: {
  readonly certificateFlag: string | undefined;
  readonly keyFlag: string | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
}): AuthorityImport | undefined {
  const { environment } = sources;
  const certificate =
    sources.certificateFlag ?? setVariable(environment, "WEIR_CA_CERT_FILE", "SERVICE_CA_CERT_FILE")?.value;
  const key = sources.keyFlag ?? setVariable(environment, "WEIR_CA_KEY_FILE", "SERVICE_CA_KEY_FILE")?.value;
  if ((certificate ?? "") === "" && (key ?? "") === "") return undefined;
  if (certificate === undefined || certificate === "") throw new StartupError("--ca-key-file needs --ca-cert-file");
  if (key === undefined || key === "") throw new StartupError("--ca-cert-file needs --ca-key-file");
  return { certificateFile: resolve(certificate), keyFile: resolve(key) };
}
