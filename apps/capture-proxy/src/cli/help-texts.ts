/** Shown below the options of `weir serve --help`. */
export const SERVE_HELP = `
Every setting can be given in <data dir>/config.json, as an environment variable (WEIR_… or SERVICE_…), or as a flag;
later ones take precedence. "weir config describe" shows each value and its source.

Other environment variables:
  WEIR_DATA_DIR     the data directory
  WEIR_WEB_DIR      a built web UI to serve instead of the included one
  WEIR_LOG          log level: off, error, warn, info, debug, trace, or weir=debug,info (RUST_LOG is read too)
  NO_COLOR          no colours

Examples:
  weir serve
  weir serve --proxy-port 9000 --api-port 9001 --data-dir ./capture
  weir serve --host 0.0.0.0 --allowed-ip 192.168.1.0/24      devices of the local network
  weir serve --passthrough-domain '*.bank.example' --ignored-domain telemetry.example
  weir serve -p 0 -a 0 --json | jq -r .proxy

Exit codes: 0 stopped, 1 failed, 2 wrong usage, 3 address in use, 4 cannot start.
`;

/** Shown below the options of `weir run --help`. */
export const RUN_HELP = `
Environment variables make curl, wget, git, Node, Python, Ruby, Go, Rust, Java, Deno and others use the proxy and trust
its CA, in addition to the CAs that they already trust. Standard streams and exit code are those of the program.
With any setting of "weir serve" as a flag, the run gets its own proxy with that setting.

Examples:
  weir run -- curl https://example.com
  weir run --summary -- npm test
  weir run --har calls.har -- python3 script.py
  weir run --session "login flow" -- ./app

Exit codes: the program's; 128 + n if signal n ended it or the run; 127 not found, 126 cannot be run; 1 the capture or
the HAR file failed, 2 wrong usage, 3 address in use, 4 the capture cannot start.
`;

/** Shown below the options of commands that take a query. */
export const QUERY_TIMES = `
Times in a query are UTC unless they include a zone: since:2026-11-21T10:05 or since:2026-11-21T11:05+01:00. Tables show
local times with their zone, which can be used in queries; since:10m is ten minutes ago.
`;
