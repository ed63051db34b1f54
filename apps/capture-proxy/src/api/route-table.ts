import type { AnyOperations } from "@headworks/contract-kit";

/** Which methods a path has, for answering 405 instead of 404. */
export interface RouteTable {
  /** Empty when the path is unknown. */
  methodsOf(path: string): readonly string[];
}

/** Built from the contract: aliases included, `{id}` stands for one segment. */
export function compileRouteTable(operations: AnyOperations, prefix: string): RouteTable {
  const methods = new Map<string, Set<string>>();
  for (const table of Object.values(operations)) {
    for (const operation of Object.values(table)) {
      for (const path of [prefix + operation.path, ...(operation.aliases ?? [])]) {
        const known = methods.get(path) ?? new Set<string>();
        methods.set(path, known.add(operation.method));
        if (operation.method === "GET") known.add("HEAD");
      }
    }
  }
  const patterns = [...methods].map(([path, known]) => ({
    pattern: new RegExp(`^${path.replace(/[.*+?^$()|[\]\\]/g, "\\$&").replace(/\{\w+\}/g, "[^/]+")}$`),
    isExact: !path.includes("{"),
    known: [...known].sort(),
  }));
  // An exact path such as /blocklist/stats hides the parameter route beside it for its own methods only.
  return {
    methodsOf: (path) =>
      [...new Set(patterns.filter(({ pattern }) => pattern.test(path)).flatMap(({ known }) => known))].sort(),
  };
}
