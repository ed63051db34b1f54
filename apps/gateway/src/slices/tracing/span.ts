/** Undefined attributes are omitted. */
export type AttributeValue = string | number | boolean | undefined;
export type Attributes = Readonly<Record<string, AttributeValue>>;

/** An ended span until export. Times are those of `performance.now()`. */
export interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string | undefined;
  readonly state: string;
  readonly name: string;
  readonly kind: "server" | "client";
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Attributes;
  readonly isError: boolean;
}

export interface SpanSource {
  readonly resource: Attributes;
  readonly version: string;
}

// Enumeration values of the OTLP JSON mapping.
const KINDS = { server: 2, client: 3 } as const;
const STATUS_ERROR = 2;
/** Truncates paths, hosts and user agents, which clients choose. */
const MAX_TEXT_CHARS = 1024;

/**
 * The body of an `ExportTraceServiceRequest` in the JSON mapping of OTLP 1.x, with hexadecimal ids and 64-bit integers
 * as strings. `epochMs` is the wall clock at `performance.now()` = 0.
 */
export function exportBody(spans: readonly Span[], { resource, version }: SpanSource, epochMs: number): Buffer {
  const body = {
    resourceSpans: [
      {
        resource: { attributes: attributesOf(resource) },
        scopeSpans: [{ scope: { name: "sluice", version }, spans: spans.map((span) => spanOf(span, epochMs)) }],
      },
    ],
  };
  return Buffer.from(JSON.stringify(body));
}

function spanOf(span: Span, epochMs: number): object {
  return {
    traceId: span.traceId,
    spanId: span.spanId,
    ...(span.parentId === undefined ? {} : { parentSpanId: span.parentId }),
    ...(span.state === "" ? {} : { traceState: span.state }),
    name: cut(span.name),
    kind: KINDS[span.kind],
    startTimeUnixNano: nanoseconds(epochMs, span.startMs),
    endTimeUnixNano: nanoseconds(epochMs, Math.max(span.startMs, span.endMs)),
    attributes: attributesOf(span.attributes),
    ...(span.isError ? { status: { code: STATUS_ERROR } } : {}),
  };
}

/** Computed in two parts: a double cannot represent nanoseconds since 1970. */
function nanoseconds(epochMs: number, atMs: number): string {
  const wholeMs = Math.floor(epochMs) + Math.floor(atMs);
  const restNs = Math.floor((epochMs - Math.floor(epochMs) + (atMs - Math.floor(atMs))) * 1e6);
  return String(BigInt(wholeMs) * 1_000_000n + BigInt(restNs));
}

function attributesOf(attributes: Attributes): object[] {
  return Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined ? [] : [{ key, value: valueOf(value) }],
  );
}

function valueOf(value: string | number | boolean): object {
  if (typeof value === "string") return { stringValue: cut(value) };
  if (typeof value === "boolean") return { boolValue: value };
  return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value };
}

function cut(text: string): string {
  return text.length <= MAX_TEXT_CHARS ? text : text.slice(0, MAX_TEXT_CHARS);
}
