import { Option } from "commander";

/** Options of all commands that call the service, before or after the command's name; `json` is the help of `--json`. */
export function globalOptions(json = "Print JSON instead of a table"): Option[] {
  return [
    new Option("--api-url <url>", "URL of the service (default http://127.0.0.1:3001; env WEIR_API_URL)"),
    new Option("--json", json),
    new Option("--timeout <seconds>", "Seconds to wait for a response (default 30; env WEIR_TIMEOUT)"),
  ];
}

/** Their values. */
export interface GlobalFlags {
  readonly apiUrl?: string;
  readonly timeout?: string;
  readonly json?: boolean;
}
