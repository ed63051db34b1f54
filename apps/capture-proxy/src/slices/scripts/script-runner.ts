import { Script } from "node:vm";
import type { ScriptValidation } from "@headworks/capture-contract";

export interface LoadedScript {
  readonly id: string;
  readonly name: string;
  readonly source: string;
}

export interface HookOutcome {
  readonly durationMs: number;
  readonly error: string | null;
  readonly console: readonly string[];
}

export interface ScriptRunner {
  /** Replaces the loaded scripts; unchanged ones keep their state. */
  load(scripts: readonly LoadedScript[]): void;
  validate(source: string): Promise<ScriptValidation>;
  close(): Promise<void>;
}

const HOOK_FUNCTIONS = {
  onRequest: "on_request",
  onResponse: "on_response",
  onWebSocketMessage: "on_websocket_message",
  onGrpcMessage: "on_grpc_message",
  onTrafficStore: "on_traffic_store",
  onSessionStart: "on_session_start",
  onSessionEnd: "on_session_end",
} as const;

/** Only checks the syntax. */
export function createSyntaxChecker(): ScriptRunner {
  return {
    load: () => undefined,
    validate: (source) => {
      try {
        void new Script(source, { filename: "script.js" });
      } catch (error) {
        const { message, stack = "" } = error as Error;
        const [, line = "1"] = /script\.js:(\d+)/.exec(stack) ?? [];
        const column =
          stack
            .split("\n")
            .find((text) => /^\s*\^+$/.test(text))
            ?.indexOf("^") ?? 0;
        return Promise.resolve({ valid: false, error: message, line: Number(line), column: column + 1 });
      }
      const names = Object.keys(HOOK_FUNCTIONS) as (keyof typeof HOOK_FUNCTIONS)[];
      const found = names.filter((name) => new RegExp(`function\\s+${name}\\b`).test(source));
      return Promise.resolve({ valid: true, hooks: found.map((name) => HOOK_FUNCTIONS[name]) });
    },
    close: () => Promise.resolve(),
  };
}
