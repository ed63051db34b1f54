import { randomInt } from "node:crypto";
import { join } from "node:path";
import { MOCK_LIMITS, type mocksOperations } from "@headworks/capture-contract";
import type { Slice, SliceHost } from "#slice.ts";
import { readBodyFile } from "./body-file.ts";
import { createMockCompiler, type MockSet } from "./mocks.compile.ts";
import { createMocksInterceptor } from "./mocks.interceptor.ts";
import { createMockRecorder } from "./mocks.observer.ts";
import { createMocksOperations } from "./mocks.operations.ts";
import { createMocksStore } from "./mocks.store.ts";
import { createHitStore, createMockHits } from "./mocks.task.ts";
import { portableMocks } from "./portable-mocks.ts";
import { createRuleBook } from "./rule-book.ts";
import { createServing } from "./served-session.ts";

const RANDOM_STEPS = 0x1_0000_0000;

/** Mocks: responses in place of those of origins. */
export function createMocksSlice(host: SliceHost): Slice<typeof mocksOperations> {
  const { clock, log, events, store: captured } = host;
  const store = createMocksStore(host.database);
  const hits = createMockHits({
    store: createHitStore(host.database),
    progress: store.progress(),
    clock,
    onFailure: (error) => log.warn({ err: error }, "hits of mocks could not be saved; they are kept and retried"),
  });
  const compiler = createMockCompiler(hits.progress);
  const compile = (): MockSet => {
    const compiled = compiler.compile(store.rules(), store.collections());
    if (compiled.issues.length > 0) log.error({ issues: compiled.issues }, "unreadable mocks have no effect");
    return compiled;
  };
  const active = { rules: compile() };
  const announce = (): void => events.changed("mocks");
  const onChange = (): void => {
    active.rules = compile();
    announce();
  };
  const random = (): number => randomInt(RANDOM_STEPS) / RANDOM_STEPS;
  const bodyDirectories = (): string[] => [join(host.dataDir, "mock-bodies"), ...host.settings.running.mock_body_dirs];
  const book = createRuleBook({ store, hits, clock, onChange });
  const recorder = createMockRecorder({
    book,
    captured,
    onFailure: (error) => log.error({ err: error }, "responses could not be recorded as mocks"),
  });
  const serving = createServing({
    captured,
    nowMs: () => clock.now(),
    onFault: (error) => log.error({ err: error }, "the served session could not respond"),
    onChange: announce,
  });
  return {
    name: "mocks",
    operations: createMocksOperations({
      book,
      compiler,
      active,
      recorder,
      serving,
      captured,
      events,
      random,
    }),
    interceptor: createMocksInterceptor({
      active,
      serving: serving.current,
      hits,
      clock,
      readFile: (path) => readBodyFile(path, bodyDirectories(), MOCK_LIMITS.fileBytes),
      random,
    }),
    observer: recorder.observer,
    portableRules: portableMocks(book),
    task: {
      start: (signal) => {
        hits.task.start(signal);
        recorder.task.start(signal);
      },
    },
  };
}
