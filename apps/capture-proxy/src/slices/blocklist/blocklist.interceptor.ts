import { CONTINUE } from "#exchange/phases.ts";
import type { Interceptor } from "#exchange/phases.ts";
import type { Block, BlockRules } from "./blocklist.compile.ts";

export interface BlocklistInterceptorParts {
  readonly rules: () => BlockRules;
  readonly onHit: (entryId: string) => void;
}

/**
 * Responds to requests for blocked hosts before DNS resolution and connecting. `onTarget` is for connections that will
 * be tunnelled (passthrough domains, SOCKS, interception off): its `respond` is the response to CONNECT. It must not be
 * called where TLS will be terminated: browsers show no page for a refused CONNECT, so the client completes its
 * handshake and gets the block page from `onRequestHead`. Each call counts a hit. If it throws, the caller must fail
 * closed.
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
