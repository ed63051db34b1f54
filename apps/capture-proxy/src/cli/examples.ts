import type { Command } from "commander";
import { PropertyOption } from "./schema-options.ts";

/**
 * Examples by command, where one generated from arguments and required options would not be enough. All others are
 * generated.
 */
export const WRITTEN_EXAMPLES: Readonly<Record<string, readonly string[]>> = {
  traffic: [
    'weir traffic list -q "status:5xx host:api.example.com" --limit 20',
    "weir traffic tail",
    "weir traffic get ID",
  ],
  "traffic list": ['weir traffic list -q "status:5xx host:api.example.com" --limit 20', "weir traffic list --json"],
  "traffic search": ['weir traffic search "order 4711"'],
  "traffic rows": ["weir traffic rows --sort duration --limit 10"],
  "traffic count": ["weir traffic count -s 5xx"],
  "traffic summary": ['weir traffic summary -q "since:10m"'],
  "traffic tree": ["weir traffic tree", "weir traffic tree --of-host api.example.com"],
  "traffic values": ["weir traffic values host", "weir traffic values host --prefix api."],
  "traffic preview-matches": ["weir traffic preview-matches --path-pattern '^/orders'"],
  "traffic get": ["weir traffic get ID", "weir traffic get ID --decompressed --json"],
  "traffic body": ["weir traffic body ID response --decoded -o picture.png"],
  "traffic note": ['weir traffic note ID --notes "the slow one"', "weir traffic note ID --notes null"],
  "traffic clear": ["weir traffic clear", "weir traffic clear --ids ID"],
  "traffic import-har": ["weir traffic import-har shop.har --session-name shop"],
  "traffic tail": [
    "weir traffic tail",
    'weir traffic tail -q "method:POST" -n 0',
    "weir traffic tail --json | jq -r .url",
  ],
  streams: ["weir streams list --kind sse", "weir streams frames ID"],
  sessions: [
    "weir sessions list",
    'weir sessions create --name "before the fix"',
    "weir sessions export ID -o shop.json",
  ],
  "sessions create": ['weir sessions create --name "before the fix"'],
  "sessions import": ["weir sessions import shop.json"],
  "sessions update": ["weir sessions update ID --tags login,slow"],
  "sessions export": ["weir sessions export ID -o shop.json", "weir sessions export ID --format har -o shop.har"],
  export: ["weir export har -o traffic.har", "weir export curl ID"],
  "export har": ['weir export har -q "host:api.example.com" -o api.har'],
  "export curl": ["weir export curl ID", "weir export curl ID | sh"],
  "export snippet": ["weir export snippet ID --format python"],
  capture: ["weir capture status", "weir capture disable"],
  config: ["weir config get", "weir config update --max-requests 50000"],
  "config update": ["weir config update --max-requests 50000 --ignored-domains telemetry.example"],
  "config import": ["weir config import settings.json"],
  mirror: ["weir mirror start", "weir mirror status"],
  "mirror config": ["weir mirror config --output-dir /srv/mirror --host-filter 'api.example.com,*.cdn.example'"],
  autosave: ["weir autosave get", "weir autosave update --enabled --interval-seconds 600"],
  "autosave update": ["weir autosave update --enabled --interval-seconds 600"],
  replay: ["weir replay run ID --diff", "weir replay batch ID --iterations 500 --concurrency 20"],
  "replay create": [
    'weir replay create --name "place an order" --request-method POST --request-url https://api.example.com/orders',
  ],
  "replay update": ["weir replay update ID --request-method GET --request-url https://api.example.com/orders"],
  "replay run": [
    'weir replay run ID --set-header "Authorization: Bearer new" --diff',
    "weir replay run ID --diff --ignore-path '$..updated_at' --fail-on change",
  ],
  "replay batch": ["weir replay batch ID --iterations 500 --concurrency 20"],
  breakpoints: ["weir breakpoints create --url-pattern '*/orders*'", "weir breakpoints paused"],
  "breakpoints create": [
    "weir breakpoints create --name orders --url-pattern '*/orders*' --direction request --timeout-secs 60",
  ],
  "breakpoints update": ["weir breakpoints update ID --name orders --url-pattern '*/orders*' --direction request"],
  "breakpoints hold": ["weir breakpoints hold ID --seconds 600"],
  "breakpoints resume": [
    "weir breakpoints resume ID --action continue",
    `weir breakpoints resume ID --body '{"action": "respond", "status_code": 503, "body": "later"}'`,
  ],
  rewrites: ["weir rewrites list", "weir rewrites dry-run --entry-id ID"],
  "rewrites create": [
    `weir rewrites create --name live --direction response --path-pattern '^/cart' --body '{"rewrites": [{"type": "body_rewrite", "pattern": "staging", "replacement": "live"}]}'`,
  ],
  "rewrites update": [
    `weir rewrites update ID --name live --direction response --path-pattern '^/cart' --body '{"rewrites": [{"type": "body_rewrite", "pattern": "staging", "replacement": "live"}]}'`,
  ],
  scripts: ["weir scripts create --name tag --file tag.js", "weir scripts test --file tag.js --hook on_request"],
  "scripts create": [
    "weir scripts create --name tag --file tag.js",
    'weir scripts create --name tag --inline \'function onRequest(request) { request.headers["X-Tag"] = "1"; }\'',
    "weir scripts create --name tag --file tag.js --host-pattern '*.example.com' --hook on_request",
  ],
  "scripts update": ["weir scripts update ID --file tag.js"],
  "scripts test": [
    "weir scripts test --file tag.js --hook on_request --url https://api.example.com/orders",
    "weir scripts test --file tag.js --hook on_response --entry-id ID",
  ],
  "scripts validate": ["weir scripts validate --file tag.js", "cat tag.js | weir scripts validate --file -"],
  "scripts reorder": ["weir scripts reorder ID --priority 50", "weir scripts reorder ID --direction up"],
  "scripts match-preview": ["weir scripts match-preview --url https://api.example.com/orders --method POST"],
  "scripts config-update": ["weir scripts config-update --timeout-ms 1000"],
  "scripts types": ["weir scripts types -o weir.d.ts"],
  mocks: ["weir mocks list", "weir mocks create --name \"no stock\" --url-pattern '*/stock*' --status-code 409"],
  "mocks create": [
    `weir mocks create --name "no stock" --url-pattern '*/stock*' --status-code 409 --text '{"left": 0}'`,
  ],
  "mocks create-advanced": ["weir mocks create-advanced --body @mock.json"],
  "mocks update": ["weir mocks update ID --status-code 503"],
  "mocks update-collection": ["weir mocks update-collection ID --name checkout"],
  "mocks import": ["weir mocks import openapi.json --format openapi"],
  "mocks preview": ["weir mocks preview --request-method GET --request-url https://api.example.com/stock"],
  "mocks test": ["weir mocks test ID --request-method GET --request-url https://api.example.com/stock"],
  "mocks set-recording": ["weir mocks set-recording --enabled", "weir mocks set-recording --no-enabled"],
  blocklist: ["weir blocklist list", "weir blocklist create --pattern '*.tracker.example' --status-code 204"],
  throttle: ["weir throttle presets", 'weir throttle set --preset "Slow 3G" --enabled'],
  "throttle set": [
    'weir throttle set --preset "Slow 3G" --enabled',
    "weir throttle set --download-bps 50000 --latency-ms 400 --packet-loss-percent 1 --enabled",
  ],
  "throttle set-enabled": ["weir throttle set-enabled --no-enabled"],
  "ws-traffic": ["weir ws tail", "weir ws messages --search error"],
  "ws-traffic tail": ["weir ws tail", "weir ws tail ID --direction receive"],
  "ws-traffic send": [`weir ws send ID --text '{"op": "ping"}'`, "weir ws send ID --base64 AAEC"],
  "ws-traffic close": ["weir ws close ID --code 4000 --reason enough"],
  "ws-traffic create-rule": [`weir ws create-rule --match-text '^heartbeat' --body '{"action": {"type": "drop"}}'`],
  "ws-traffic update-rule": [`weir ws update-rule ID --match-text '^heartbeat' --body '{"action": {"type": "drop"}}'`],
  "ws-traffic resume": ["weir ws resume ID allow", "weir ws resume ID modify --text 'something else'"],
  logs: ["weir logs tail -f", "weir logs config --rotation size --size-mb 50"],
  "logs config": [
    "weir logs config --rotation hourly --max-files 48",
    "weir logs config --debug-logging-level headers",
  ],
  "logs tail": ["weir logs tail", "weir logs tail -f -n 50"],
  upstream: ["weir upstream test", "weir upstream test --target mail.example.com:25"],
  "upstream test": ["weir upstream test", "weir upstream test --target mail.example.com:25"],
  grpc: ["weir grpc streams --service Orders", "weir grpc schemas add proto/"],
  "grpc schemas": ["weir grpc schemas list", "weir grpc schemas add proto/"],
  "grpc schemas add": [
    "weir grpc schemas add orders.proto types.proto",
    "weir grpc schemas add proto/",
    "protoc --include_imports --descriptor_set_out=shop.binpb orders.proto && weir grpc schemas add shop.binpb",
  ],
  "grpc schemas reflect": ["weir grpc schemas reflect https://localhost:50051"],
  persistence: ["weir persistence export > rules.json", "weir persistence import rules.json --dry-run"],
  "persistence export": ["weir persistence export > rules.json"],
  "persistence import": ["weir persistence import rules.json --mode merge --dry-run"],
  focus: ["weir focus add api.example.com", "weir focus list"],
  "focus add": ["weir focus add api.example.com"],
  cert: ["weir cert info", "weir cert ca -o weir.pem"],
  "cert ca": ["weir cert ca -o weir.pem", "weir cert ca --format der -o weir.der"],
  "cert mobileconfig": ["weir cert mobileconfig -o weir.mobileconfig"],
  metrics: ["weir metrics health", "weir metrics get --json"],
  diff: ["weir diff ID OTHER", "weir diff ID --fail-on change", "weir diff --sessions ID OTHER"],
  ca: ["weir ca path", "weir ca install-help", "weir ca import ca.pem ca-key.pem"],
  "ca export": ["weir ca export --der -o weir.der"],
  "ca import": ["weir ca import ca.pem ca-key.pem"],
  "ca renew": ["weir ca renew", "weir ca renew --yes"],
  "ca install-help": ["weir ca install-help", "weir ca install-help --all --undo"],
  doctor: ["weir doctor", "weir doctor --json"],
  completion: ["weir completion fish | source", "source <(weir completion bash)"],
};

/** Has the help of a command and of all commands below it end with examples; `path` are its words. */
export function addExamples(command: Command, path: string): void {
  const lines = WRITTEN_EXAMPLES[path] ?? [madeExample(command, path)];
  command.addHelpText("after", `\nExamples:\n${lines.map((line) => `  ${line}\n`).join("")}`);
  for (const below of command.commands) addExamples(below, `${path} ${below.name()}`);
}

/** The command with what it cannot do without. */
function madeExample(command: Command, path: string): string {
  const words = command.registeredArguments.map(
    (argument) => argument.argChoices?.[0] ?? SAMPLES[argument.name()] ?? placeholder(argument.name()),
  );
  const flags = command.options
    .filter((option) => option instanceof PropertyOption)
    .filter(({ isNeeded }) => isNeeded)
    .map((option) => `${option.long} ${sampleOf(option)}`.trimEnd());
  return ["weir", path, ...words, ...flags].join(" ");
}

/** Values that read better than their names. */
const SAMPLES: Readonly<Record<string, string>> = {
  pattern: "'*.tracker.example'",
  name: "checkout",
  side: "response",
  ordinal: "3",
};

function sampleOf(option: PropertyOption): string {
  if (option.isBoolean()) return "";
  const { path, schema } = option.property;
  const name = path.at(-1) ?? "";
  const isNumber = schema.type === "integer" || schema.type === "number";
  return option.argChoices?.[0] ?? SAMPLES[name] ?? (isNumber ? String(schema.minimum ?? 1) : placeholder(name));
}

/** `entry_ids` takes an id, and so do the others of its kind. */
function placeholder(name: string): string {
  return /(?:^|_)ids?$/.test(name) ? "ID" : name.toUpperCase();
}
