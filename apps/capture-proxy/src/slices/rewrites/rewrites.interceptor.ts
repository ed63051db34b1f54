import type { Interceptor } from "#exchange/phases.ts";
import type { RewriteRun } from "./rewrite-run.ts";
import type { RewriteRules } from "./rewrites.compile.ts";

/** Applies the current rules to requests and responses; without rules it costs two comparisons. */
export function createRewritesInterceptor(run: RewriteRun, rules: () => RewriteRules): Interceptor {
  return {
    name: "rewrites",
    onRequestHead: (exchange) => run.request(exchange, rules()),
    onResponseHead: (exchange) => run.response(exchange, rules()),
  };
}
