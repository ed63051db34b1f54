import type { Exchange } from "#exchange/exchange.ts";
import { CONTINUE, type Interceptor, type Verdict } from "#exchange/phases.ts";
import type { Clock } from "#slice.ts";
import type { FileReading } from "./body-file.ts";
import { type CompiledMock, type MockSet, RequestSubject } from "./mocks.compile.ts";
import type { MockHits } from "./mocks.task.ts";
import type { ServedSession } from "./served-session.ts";

/** Larger bodies are not buffered; conditions and templates see no body. */
const MAX_BODY_BYTES = 10_485_760;

export interface MocksInterceptorParts {
  /** The rules in force; replaced on every change. */
  readonly active: { readonly rules: MockSet };
  readonly serving: () => ServedSession | undefined;
  readonly hits: Pick<MockHits, "touched" | "answered">;
  readonly clock: Clock;
  readonly readFile: (path: string) => Promise<FileReading>;
  /** In [0, 1). */
  readonly random: () => number;
}

/**
 * Responds in place of origins, before names are resolved or connections opened: with the first matching rule, else
 * from the served session. The request body is awaited only when a candidate rule or its response depends on it.
 */
export function createMocksInterceptor(parts: MocksInterceptorParts): Interceptor {
  const { active, serving } = parts;
  return {
    name: "mocks",
    onTarget: ({ host, port }) => serving()?.target(host, port) ?? CONTINUE,
    onRequestHead: (exchange) => {
      const set = active.rules;
      const session = serving();
      if (set.size === 0 && session === undefined) return CONTINUE;
      if (session === undefined) return decide(parts, exchange, set);
      // An exception would let the request through to its origin, which a strict served session must prevent.
      try {
        const verdict = decide(parts, exchange, set);
        if (!(verdict instanceof Promise)) return verdict;
        return verdict.catch((error: unknown) => session.broken(exchange, error));
      } catch (error) {
        return session.broken(exchange, error);
      }
    },
  };
}

function decide(parts: MocksInterceptorParts, exchange: Exchange, set: MockSet): Verdict | Promise<Verdict> {
  const { clock } = parts;
  const startedMs = clock.monotonic();
  const subject = new RequestSubject(exchange.request);
  const found = set.find(subject, clock.now());
  if (found === "needs-body" || (found?.choice.needsBody === true && subject.isBodyUnread)) {
    return withBody(parts, exchange, subject, startedMs);
  }
  if (found !== undefined) return response(parts, exchange, subject, found, startedMs);
  return parts.serving()?.response(exchange) ?? CONTINUE;
}

async function withBody(
  parts: MocksInterceptorParts,
  exchange: Exchange,
  subject: RequestSubject,
  startedMs: number,
): Promise<Verdict> {
  const content = await exchange.requestContent(MAX_BODY_BYTES);
  if (content.kind === "gone") return CONTINUE;
  await subject.readBody(content.kind === "complete" ? content.bytes : undefined);
  // Rules may have changed while the body was received.
  const found = parts.active.rules.find(subject, parts.clock.now());
  if (found !== undefined && found !== "needs-body") return await response(parts, exchange, subject, found, startedMs);
  return (await parts.serving()?.response(exchange)) ?? CONTINUE;
}

function response(
  parts: MocksInterceptorParts,
  exchange: Exchange,
  subject: RequestSubject,
  mock: CompiledMock,
  startedMs: number,
): Verdict | Promise<Verdict> {
  const { clock, hits, random } = parts;
  const { rule, progress } = mock;
  // Counted before any delay, so that concurrent requests see the updated count.
  const choice = mock.choice.choose(subject, progress, random(), false);
  progress.hits += 1;
  hits.touched(rule.id);
  const delayMs = choice.response.delayMs(random());
  const make = () => choice.response.make(subject, { nowMs: clock.now(), readFile: parts.readFile });
  const respond = (response: Awaited<ReturnType<typeof make>>): Verdict => {
    hits.answered({
      mockId: rule.id,
      atMs: clock.now(),
      url: subject.url,
      method: subject.method,
      status: response.status,
      timeMs: Math.round((clock.monotonic() - startedMs) * 100) / 100,
      index: choice.index,
    });
    const which = choice.index === null ? "" : ` (response ${choice.index + 1})`;
    exchange.addTrace({
      kind: "mock",
      ruleId: rule.id,
      ruleName: rule.name,
      phase: "request",
      changes: [`answered with ${response.status}${which}`],
    });
    return { kind: "respond", response };
  };
  if (delayMs === 0) {
    const made = make();
    return made instanceof Promise ? made.then(respond) : respond(made);
  }
  return waited(clock, delayMs).then(make).then(respond);
}

function waited(clock: Clock, delayMs: number): Promise<void> {
  return new Promise((resolve) => {
    clock.after(delayMs, resolve);
  });
}
