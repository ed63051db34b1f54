import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CertificateAuthority } from "@headworks/tls-authority";

/** Where everything of a run lies, and the ports that were free when it began. */
export interface Site {
  readonly directory: string;
  readonly originPort: number;
  readonly certificateFile: string;
  readonly keyFile: string;
}

/** Sizes of answers by path. */
export const RESPONSES = { "/200": 200, "/16k": 16_384, "/1m": 1_048_576 } as const;

/** Files that the origin serves and the certificate that proxies show. */
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

/** nginx as the origin: answers from memory, keeps every connection, reads what it is sent. */
export function originConfiguration({ directory, originPort }: Site): string {
  // Started by root, its workers would be somebody who may not read the folder.
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
