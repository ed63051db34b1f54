/** A set of files with the same rights. The first zone whose globs match a file is the file's zone. */
export interface Zone {
  readonly name: string;
  /** Globs from the repository root. */
  readonly files: readonly string[];
  /** Node built-ins, named without `node:` and without subpath. */
  readonly node: "all" | readonly string[] | { readonly allBut: readonly string[] };
  /** Packages of the registry; a name ending in `/*` stands for a whole scope. */
  readonly npm: "all" | readonly string[];
  /** Our zones that may be imported besides the own one; a name ending in `*` stands for all that begin so. */
  readonly ours: readonly string[];
  /** Our zones of which types may be imported (`import type`), nothing that exists at run time. */
  readonly typesOf?: readonly string[];
  /** Files of the zone see each other only inside the same folder below the first `*` of the glob. */
  readonly islands?: boolean;
  /** If set, files outside the zone may import only these of it (globs). */
  readonly doors?: readonly string[];
  /** The alternative to a forbidden import; printed with every violation. */
  readonly instead: string;
}

/** Work in other threads. */
export const THREADS = ["worker-host", "sandbox"];

/** Node's modules that open connections. */
export const NETWORK = ["net", "tls", "http", "https", "http2", "dgram", "dns", "quic"];
/** Node's modules with other effects outside the process. */
export const SYSTEM = ["child_process", "cluster", "worker_threads", "sqlite", "inspector", "repl"];

/** Standards and formats: no I/O of their own, usable by both services. */
export const FORMATS = "format:*";

/** The contract of Weir and the kit that gives contracts their shape, without the server's part. */
export const CONTRACT = ["capture-contract", "contract-kit"];

/** The same for Sluice. */
export const GATEWAY_CONTRACT = ["gateway-contract", "contract-kit"];

/** The logger's type; creating a logger is reserved, see `reservedModules`. */
export const LOGGER = "pino";

export const takeAsParameter =
  "Receive it as a parameter; the composition root (proxy.ts) sees both sides and connects them";
export const findTheNoun =
  "Move the shared noun to the engine folder that owns it, or receive a contribution through the slice host";
