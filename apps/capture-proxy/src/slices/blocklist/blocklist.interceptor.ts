import { CONTINUE } from "#exchange/phases.ts";
import type { Interceptor } from "#exchange/phases.ts";
import type { Block, BlockRules } from "./blocklist.compile.ts";

export interface BlocklistInterceptorParts {
  /** The rules in force. */
  readonly rules: () => BlockRules;
  readonly onHit: (entryId: string) => void;
}

/**
 * Answers requests to blocked hosts before anything is resolved or dialled.
 *
 * `onTarget` is for connections that will be tunnelled (passthrough domains, SOCKS, interception off): its `respond`
 * is the answer to CONNECT. Where TLS is going to be terminated it must not be asked: the client shall complete its
 * handshake with us and get the block page as the answer to its request, from `onRequestHead`; browsers show no page
 * for a refused CONNECT. Each call counts a hit.
 *
 * It throws nothing of its own; should it throw, the runner must fail closed.
 */
export function createBlocklistInterceptor({ rules, onHit }: BlocklistInterceptorParts): Interceptor {
  const find = (host: string): Block | undefined => {
    const block = rules().find(host);
    if (block) onHit(block.entryId);
    return block;
  };
  return {
    name: "blocklist",
    onTarget: ({ host }) => {
      const block = find(host);
      return block ? { kind: "respond", response: block.response } : CONTINUE;
    },
    onRequestHead: (exchange) => {
      const block = find(exchange.request.host);
      if (!block) return CONTINUE;
      const { entryId: ruleId, pattern: ruleName, response } = block;
      exchange.addTrace({
        kind: "block",
        ruleId,
        ruleName,
        phase: "request",
        changes: [`answered with ${response.status}`],
      });
      return { kind: "respond", response: block.response };
    },
  };
}
