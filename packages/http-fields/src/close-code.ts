/** Names of close codes (RFC 6455, 7.4.1, and the registry of WebSocket close codes). */
const CODE_NAMES: Readonly<Record<number, string>> = {
  1000: "Normal Closure",
  1001: "Going Away",
  1002: "Protocol Error",
  1003: "Unsupported Data",
  1005: "No Status Received",
  1006: "Abnormal Closure",
  1007: "Invalid Frame Payload Data",
  1008: "Policy Violation",
  1009: "Message Too Big",
  1010: "Mandatory Extension",
  1011: "Internal Error",
  1012: "Service Restart",
  1013: "Try Again Later",
  1014: "Bad Gateway",
  1015: "TLS Handshake",
  3000: "Unauthorized",
  3003: "Forbidden",
  3008: "Timeout",
};

/** A WebSocket close in one line: `1000 Normal Closure: bye`. */
export function closeCodeText(code: number, reason = ""): string {
  const name = CODE_NAMES[code];
  return `${code}${name === undefined ? "" : ` ${name}`}${reason === "" ? "" : `: ${reason}`}`;
}
