import { shellQuoted } from "./banner.ts";

/** How one place is made to trust the CA, and how that is taken back. */
export interface TrustGuide {
  readonly id: string;
  readonly name: string;
  readonly trust: string;
  readonly undo: string;
  /** Shown without asking for all: it concerns this operating system. */
  readonly platforms: readonly NodeJS.Platform[];
}

const ALL: readonly NodeJS.Platform[] = ["linux", "darwin", "win32"];

/** Commands for each place that keeps its own list of trusted CAs. `path` is the PEM file. */
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
