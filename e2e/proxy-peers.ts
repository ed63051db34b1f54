import { delimiter } from "node:path";
import { peer } from "@headworks/testkit";
import type { ProxyCommand } from "./proxy-processes.ts";

// Debian installs daemons in directories that only root's PATH has.
process.env["PATH"] = `${process.env["PATH"] ?? ""}${delimiter}/usr/sbin`;

export const squid = peer("squid");
export const tinyproxy = peer("tinyproxy");
export const microsocks = peer("microsocks");
export const danted = peer("danted");
export const mitmdump = peer("mitmdump");

export const squidCommand =
  (login?: string, parentPort?: number): ProxyCommand =>
  (port, directory) => ({
    command: squid.path,
    args: ["-N", "-f", `${directory}/squid.conf`],
    files: {
      "squid.conf": [
        `http_port 127.0.0.1:${port}`,
        ...(login === undefined
          ? ["http_access allow all"]
          : [
              `auth_param basic program /bin/sh ${directory}/login.sh`,
              "auth_param basic children 1",
              "acl known proxy_auth REQUIRED",
              "http_access allow known",
              "http_access deny all",
            ]),
        ...(parentPort === undefined
          ? []
          : [`cache_peer 127.0.0.1 parent ${parentPort} 0 no-query no-digest default`, "never_direct allow all"]),
        "cache deny all",
        `pid_filename ${directory}/squid.pid`,
        `access_log stdio:${directory}/access.log`,
        `cache_log ${directory}/cache.log`,
        `coredump_dir ${directory}`,
        "shutdown_lifetime 0 seconds",
        "",
      ].join("\n"),
      "login.sh": `while read -r user password; do if [ "$user:$password" = "${login ?? ""}" ]; then echo OK; else echo ERR; fi; done\n`,
    },
  });

export const tinyproxyCommand =
  (login?: string, parentPort?: number): ProxyCommand =>
  (port, directory) => ({
    command: tinyproxy.path,
    args: ["-d", "-c", `${directory}/tinyproxy.conf`],
    files: {
      "tinyproxy.conf": [
        `Port ${port}`,
        "Listen 127.0.0.1",
        "Timeout 30",
        ...(login === undefined ? [] : [`BasicAuth ${login.replace(":", " ")}`]),
        ...(parentPort === undefined ? [] : [`Upstream http 127.0.0.1:${parentPort}`]),
        "",
      ].join("\n"),
    },
  });

export const dantedCommand: ProxyCommand = (port, directory) => ({
  command: danted.path,
  args: ["-f", `${directory}/danted.conf`, "-p", `${directory}/danted.pid`],
  files: {
    "danted.conf": [
      "logoutput: stderr",
      `internal: 127.0.0.1 port = ${port}`,
      "external: lo",
      "socksmethod: none",
      "clientmethod: none",
      "client pass { from: 0/0 to: 0/0 }",
      "socks pass { from: 0/0 to: 0/0 }",
      "",
    ].join("\n"),
  },
});

export const microsocksCommand =
  (...login: string[]): ProxyCommand =>
  (port) => ({ command: microsocks.path, args: ["-i", "127.0.0.1", "-p", String(port), ...login] });

export const mitmdumpCommand =
  (mode: string): ProxyCommand =>
  (port, directory) => ({
    command: mitmdump.path,
    args: [
      "--mode",
      mode,
      "--listen-host",
      "127.0.0.1",
      "-p",
      String(port),
      "--set",
      `confdir=${directory}`,
      "--ignore-hosts",
      ".*",
      "-q",
    ],
  });
