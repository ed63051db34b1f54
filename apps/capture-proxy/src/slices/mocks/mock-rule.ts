import type {
  Condition,
  MockExpiration,
  MockResponse,
  MockResponseConfig,
  MockRule,
  MockVersion,
  NewMockResponse,
  NewMockResponseConfig,
} from "@headworks/capture-contract";

/** The mutable state of a rule; survives recompilation. */
export interface MockProgress {
  hits: number;
  /** Index of the next response of a sequence. */
  nextIndex: number;
}

/** A stored rule, with defaults; the counters are stored separately. */
export interface StoredMock {
  readonly id: string;
  readonly name: string;
  readonly description: string | null;
  readonly tags: readonly string[];
  readonly collectionId: string | null;
  readonly condition: Condition;
  readonly responseConfig: MockResponseConfig;
  readonly enabled: boolean;
  readonly priority: number;
  readonly expiration: MockExpiration | null;
  /** The base of the expiration: wall clock, and the rule's hits at that time. */
  readonly expirationSince: { readonly atMs: number; readonly hits: number };
  readonly responseSchema: string | null;
  readonly version: number;
  /** Recorded from traffic and not promoted: inactive. */
  readonly isRecorded: boolean;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

export interface StoredVersion {
  readonly version: number;
  readonly condition: Condition;
  readonly responseConfig: MockResponseConfig;
  readonly comment: string | null;
  readonly savedAtMs: number;
}

export interface StoredCollection {
  readonly id: string;
  readonly name: string;
  readonly description: string | null;
  readonly enabled: boolean;
  readonly tags: readonly string[];
  readonly color: string | null;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

export type MockDraft = Pick<
  StoredMock,
  | "name"
  | "description"
  | "tags"
  | "collectionId"
  | "condition"
  | "responseConfig"
  | "enabled"
  | "priority"
  | "expiration"
  | "responseSchema"
>;

export function newMock(id: string, draft: MockDraft, nowMs: number, isRecorded = false): StoredMock {
  return {
    id,
    ...draft,
    expirationSince: { atMs: nowMs, hits: 0 },
    version: 1,
    isRecorded,
    createdAtMs: nowMs,
    updatedAtMs: nowMs,
  };
}

/** A draft with defaults for everything else. */
export function plainDraft(name: string, condition: Condition, responseConfig: MockResponseConfig): MockDraft {
  return {
    name: name.slice(0, 255),
    description: null,
    tags: [],
    collectionId: null,
    condition,
    responseConfig,
    enabled: true,
    priority: 100,
    expiration: null,
    responseSchema: null,
  };
}

export function filledResponse(response: NewMockResponse): MockResponse {
  return {
    status_code: response.status_code ?? 200,
    headers: response.headers ?? {},
    body: response.body ?? null,
    body_base64: response.body_base64 ?? null,
    body_file: response.body_file ?? null,
    delay_ms: response.delay_ms ?? null,
    delay_variance_ms: response.delay_variance_ms ?? null,
    template_enabled: response.template_enabled ?? false,
  };
}

/** Fills in defaults; a sequence begins with its first response, regardless of `current_index`. */
export function filledConfig(config: NewMockResponseConfig): MockResponseConfig {
  switch (config.type) {
    case "single":
      return { type: "single", response: filledResponse(config.response) };
    case "sequence":
      return {
        type: "sequence",
        responses: config.responses.map(filledResponse),
        current_index: 0,
        cycle: config.cycle ?? true,
      };
    case "conditional":
      return {
        type: "conditional",
        conditions: config.conditions.map(({ condition, response }) => ({
          condition,
          response: filledResponse(response),
        })),
        default_response: filledResponse(config.default_response),
      };
    case "probabilistic":
      return {
        type: "probabilistic",
        responses: config.responses.map(({ weight, response }) => ({ weight, response: filledResponse(response) })),
      };
  }
}

export function responsesOf(config: MockResponseConfig): readonly MockResponse[] {
  switch (config.type) {
    case "single":
      return [config.response];
    case "sequence":
      return config.responses;
    case "conditional":
      return [...config.conditions.map(({ response }) => response), config.default_response];
    case "probabilistic":
      return config.responses.map(({ response }) => response);
  }
}

export function isExpired(rule: StoredMock, hits: number, nowMs: number): boolean {
  const { expiration, expirationSince: since } = rule;
  if (expiration === null) return false;
  switch (expiration.type) {
    case "date_time":
      return nowMs >= Date.parse(expiration.expires_at);
    case "hit_count":
      return hits - since.hits >= expiration.max_hits;
    case "duration":
      return nowMs >= since.atMs + expiration.duration_secs * 1000;
  }
}

export function showMock(
  rule: StoredMock,
  progress: MockProgress,
  nowMs: number,
  versions: readonly StoredVersion[] = [],
): MockRule {
  return {
    id: rule.id,
    name: rule.name,
    description: rule.description,
    tags: [...rule.tags],
    collection_id: rule.collectionId,
    condition: rule.condition,
    response_config: shownConfig(rule.responseConfig, progress.nextIndex),
    enabled: rule.enabled,
    priority: rule.priority,
    created_at: iso(rule.createdAtMs),
    updated_at: iso(rule.updatedAtMs),
    hit_count: progress.hits,
    expiration: rule.expiration,
    expired: isExpired(rule, progress.hits, nowMs),
    version: rule.version,
    ...(versions.length === 0 ? {} : { version_history: versions.map(showVersion) }),
    response_schema: rule.responseSchema,
    response_script: null,
    device_id: null,
  };
}

function shownConfig(config: MockResponseConfig, nextIndex: number): MockResponseConfig {
  if (config.type !== "sequence") return config;
  return { ...config, current_index: Math.min(nextIndex, config.responses.length - 1) };
}

export function showVersion(version: StoredVersion): MockVersion {
  return {
    version: version.version,
    condition: version.condition,
    response_config: version.responseConfig,
    saved_at: iso(version.savedAtMs),
    comment: version.comment,
  };
}

/** The inverse of {@link showMock}; an expiration starts anew unless `before` has the same one. */
export function readMock(shown: MockRule, before: StoredMock | undefined, nowMs: number): StoredMock {
  const isSame = before !== undefined && JSON.stringify(before.expiration) === JSON.stringify(shown.expiration);
  return {
    id: shown.id,
    name: shown.name,
    description: shown.description,
    tags: shown.tags,
    collectionId: shown.collection_id,
    condition: shown.condition,
    responseConfig: filledConfig(shown.response_config),
    enabled: shown.enabled,
    priority: shown.priority,
    expiration: shown.expiration,
    expirationSince: isSame ? before.expirationSince : { atMs: nowMs, hits: shown.hit_count },
    responseSchema: shown.response_schema,
    version: shown.version,
    isRecorded: false,
    createdAtMs: Date.parse(shown.created_at),
    updatedAtMs: Date.parse(shown.updated_at),
  };
}

export function readVersion(shown: MockVersion): StoredVersion {
  return {
    version: shown.version,
    condition: shown.condition,
    responseConfig: filledConfig(shown.response_config),
    comment: shown.comment,
    savedAtMs: Date.parse(shown.saved_at),
  };
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
