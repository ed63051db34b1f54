import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CertificateAuthority } from "@headworks/tls-authority";

/** Files of a run, and ports that were free at its start. */
export interface Site {
  readonly directory: string;
  readonly originPort: number;
  readonly certificateFile: string;
  readonly keyFile: string;
}

/** Sizes of responses by path. */
export const RESPONSES = { "/200": 200, "/16k": 16_384, "/1m": 1_048_576 } as const;

/** Files of the origin, and the certificate of the proxies. */
export function prepareSite(directory: string, originPort: number): Site {
  const root = join(directory, "www");
  mkdirSync(root, { recursive: true });
  for (const [path, bytes] of Object.entries(RESPONSES)) writeFileSync(join(root, path), Buffer.alloc(bytes, "a"));
  const leaf = CertificateAuthority.create().issueLeaf({ dns: ["localhost"], ip: ["127.0.0.1"] });
  const certificateFile = join(directory, "cert.pem");
  const keyFile = join(directory, "key.pem");
  writeFileSync(certificateFile, leaf.chainPem);
  writeFileSync(keyFile, leaf.keyPem, { mode: 0o600 });
  return { directory, originPort, certificateFile, keyFile };
}

/** nginx as the origin: responds from memory, keeps connections, reads request bodies. */
export function originConfiguration({ directory, originPort }: Site): string {
  // If root starts it, its workers would run as a user without access to the folder.
  const user = process.getuid?.() === 0 ? "user root; " : "";
  return `${user}worker_processes 1; daemon off; pid ${directory}/origin.pid; error_log ${directory}/origin.err;
events { worker_connections 8192; }
http {
  access_log off; keepalive_requests 1000000000; keepalive_timeout 600; client_body_temp_path ${directory}/b;
  open_file_cache max=100; default_type application/octet-stream; sendfile on;
  server {
    listen 127.0.0.1:${originPort} backlog=8192;
    location = /200 { return 200 "${"a".repeat(200)}"; }
    location = /post { client_max_body_size 1m; return 200 "ok"; }
    location / { root ${directory}/www; }
  }
}
`;
}
