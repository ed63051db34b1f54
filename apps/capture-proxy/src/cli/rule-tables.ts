import { formatBitRate, formatRate } from "@headworks/capture-contract";
import type {
  Breakpoint,
  Condition,
  MockCollection,
  MockHit,
  MockMiss,
  MockRule,
  MockVersion,
  PausedItem,
  ReplayBatch,
  ReplayResult,
  RewriteRule,
  SavedRequest,
  ThrottleProfile,
} from "@headworks/capture-contract";
import { describeCondition } from "@headworks/match-condition";
import { durationText, timeText } from "./present-values.ts";
import type { WideColumn } from "./table.ts";

interface Switched {
  readonly enabled: boolean;
}

const on: WideColumn<Switched> = { title: "On", text: (row) => (row.enabled ? "yes" : "no") };
const name: WideColumn<{ readonly name: string }> = { title: "Name", text: (row) => row.name, shrinksTo: 10 };
const id: WideColumn<{ readonly id: string }> = { title: "Id", text: (row) => row.id };
const hits: WideColumn<{ readonly hit_count: number }> = {
  title: "Hits",
  text: (row) => String(row.hit_count),
  align: "right",
};
const priority: WideColumn<{ readonly priority: number }> = {
  title: "Priority",
  text: (row) => String(row.priority),
  align: "right",
  fromColumns: 110,
};
const matches: WideColumn<{ readonly condition: Condition }> = {
  title: "Matches",
  text: (row) => describeCondition(row.condition),
  shrinksTo: 12,
};

const breakpoints: readonly WideColumn<Breakpoint>[] = [
  on,
  name,
  { title: "Pauses", text: (row) => row.direction },
  matches,
  { title: "Timeout", text: (row) => (row.timeout_secs === null ? "" : `${row.timeout_secs} s`), fromColumns: 110 },
  priority,
  hits,
  id,
];

const paused: readonly WideColumn<PausedItem>[] = [
  { title: "#", text: (row) => String(row.position), align: "right" },
  { title: "Side", text: (row) => row.direction },
  { title: "Method", text: (row) => row.request.method },
  { title: "Status", text: (row) => (row.response === null ? "" : String(row.response.status_code)) },
  { title: "URL", text: (row) => row.request.url, shrinksTo: 18, cut: "middle" },
  { title: "Rule", text: (row) => row.rule_name, shrinksTo: 8, fromColumns: 100 },
  { title: "Since", text: (row) => timeText(row.paused_at), fromColumns: 90 },
  { title: "Until", text: (row) => (row.deadline === null ? "" : timeText(row.deadline)), fromColumns: 130 },
  id,
];

const rewrites: readonly WideColumn<RewriteRule>[] = [
  on,
  name,
  { title: "Changes", text: (row) => row.direction },
  { title: "Actions", text: (row) => row.rewrites.map(({ type }) => type).join(", "), shrinksTo: 10 },
  matches,
  priority,
  hits,
  id,
];

const mocks: readonly WideColumn<MockRule>[] = [
  { title: "On", text: (row) => (row.expired ? "expired" : row.enabled ? "yes" : "no") },
  name,
  matches,
  { title: "Response", text: (row) => responseText(row), shrinksTo: 8 },
  { title: "Tags", text: (row) => row.tags.join(", "), shrinksTo: 6, fromColumns: 130 },
  priority,
  hits,
  id,
];

/** The response of a mock, in a word or two. */
function responseText({ response_config: config }: MockRule): string {
  switch (config.type) {
    case "single":
      return String(config.response.status_code);
    case "conditional":
      return `${config.conditions.length + 1} by condition`;
    case "sequence":
      return `${config.responses.length} in turn`;
    case "probabilistic":
      return `${config.responses.length} by chance`;
  }
}

const versions: readonly WideColumn<MockVersion>[] = [
  { title: "Version", text: (row) => String(row.version), align: "right" },
  { title: "Saved", text: (row) => timeText(row.saved_at) },
  matches,
  { title: "Comment", text: (row) => row.comment ?? "", shrinksTo: 10 },
];

const collections: readonly WideColumn<MockCollection>[] = [
  on,
  name,
  { title: "Rules", text: (row) => String(row.rule_count), align: "right" },
  { title: "Description", text: (row) => row.description ?? "", shrinksTo: 10, fromColumns: 90 },
  id,
];

const mockHits: readonly WideColumn<MockHit>[] = [
  { title: "Time", text: (row) => timeText(row.timestamp) },
  { title: "Method", text: (row) => row.request_method },
  { title: "Status", text: (row) => String(row.response_status), align: "right" },
  { title: "URL", text: (row) => row.request_url, shrinksTo: 18, cut: "middle" },
  { title: "Duration", text: (row) => durationText(row.response_time_ms), align: "right" },
  { title: "Mock", text: (row) => row.mock_id, fromColumns: 120 },
];

const savedRequests: readonly WideColumn<SavedRequest>[] = [
  { title: "Name", text: (row) => row.name ?? "", shrinksTo: 10 },
  { title: "Method", text: (row) => row.request.method },
  { title: "URL", text: (row) => row.request.url, shrinksTo: 18, cut: "middle" },
  { title: "Collection", text: (row) => row.collection ?? "", shrinksTo: 8, fromColumns: 110 },
  { title: "Saved", text: (row) => timeText(row.saved_at), fromColumns: 130 },
  id,
];

const replays: readonly WideColumn<ReplayResult>[] = [
  { title: "Time", text: (row) => timeText(row.executed_at) },
  { title: "Method", text: (row) => row.request.method },
  { title: "Status", text: (row) => (row.response ? String(row.response.status_code) : (row.error_code ?? "failed")) },
  { title: "URL", text: (row) => row.request.url, shrinksTo: 18, cut: "middle" },
  { title: "Duration", text: (row) => durationText(row.duration_ms), align: "right" },
  { title: "Entry", text: (row) => row.entry_id ?? "", fromColumns: 150 },
  id,
];

const batches: readonly WideColumn<ReplayBatch>[] = [
  { title: "Started", text: (row) => timeText(row.started_at) },
  { title: "State", text: (row) => row.state },
  { title: "Done", text: (row) => String(row.total), align: "right" },
  { title: "Failed", text: (row) => String(row.failed), align: "right" },
  { title: "p50", text: (row) => durationText(row.p50_ms ?? undefined), align: "right", fromColumns: 90 },
  { title: "p95", text: (row) => durationText(row.p95_ms ?? undefined), align: "right", fromColumns: 90 },
  { title: "p99", text: (row) => durationText(row.p99_ms ?? undefined), align: "right", fromColumns: 110 },
  id,
];

/** Templates of rules of any kind. */
const templates: readonly WideColumn<{ readonly name: string; readonly description: string }>[] = [
  name,
  { title: "Description", text: (row) => row.description, shrinksTo: 20 },
];

const misses: readonly WideColumn<MockMiss>[] = [
  { title: "Time", text: (row) => timeText(row.timestamp) },
  { title: "Method", text: (row) => row.method },
  { title: "URL", text: (row) => row.url, shrinksTo: 18, cut: "middle" },
  { title: "Closest", text: (row) => row.near[0]?.differences.join("; ") ?? row.reason, shrinksTo: 14 },
];

const rate = (bytesPerSecond: number): string =>
  bytesPerSecond === 0 ? "no limit" : `${formatRate(bytesPerSecond)} (${formatBitRate(bytesPerSecond)})`;

const throttleProfiles: readonly WideColumn<ThrottleProfile>[] = [
  name,
  { title: "Down", text: (row) => rate(row.download_bps), align: "right" },
  { title: "Up", text: (row) => rate(row.upload_bps), align: "right" },
  { title: "Latency", text: (row) => durationText(row.latency_ms), align: "right" },
  { title: "Jitter", text: (row) => durationText(row.jitter_ms), align: "right" },
  { title: "Loss", text: (row) => `${row.packet_loss_percent} %`, align: "right" },
];

/** Tables of rules and their hits, by the schema name of their rows. */
export const RULE_TABLES: Readonly<Record<string, readonly WideColumn<never>[]>> = {
  Breakpoint: breakpoints,
  PausedItem: paused,
  RewriteRule: rewrites,
  MockRule: mocks,
  MockVersion: versions,
  MockCollection: collections,
  MockHit: mockHits,
  MockTemplate: templates,
  MockMiss: misses,
  RewriteTemplate: templates,
  ThrottleProfile: throttleProfiles,
  SavedRequest: savedRequests,
  ReplayResult: replays,
  ReplayBatch: batches,
};
