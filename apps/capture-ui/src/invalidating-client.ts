import { QueryClient, type InvalidateOptions, type InvalidateQueryFilters, type QueryKey } from "@tanstack/react-query";

/**
 * A query client whose invalidation also holds for answers that are under way. The base class starts a fetch anew only
 * where there is data already: a first answer that was made before the change would be taken, and count as fresh.
 */
export class InvalidatingClient extends QueryClient {
  /** Resolves when what is shown was fetched after the call. First answers under way are waited for, then fetched again. */
  override async invalidateQueries<TaggedQueryKey extends QueryKey = QueryKey>(
    filters?: InvalidateQueryFilters<TaggedQueryKey>,
    options?: InvalidateOptions,
  ): Promise<void> {
    const loading = new Set(
      this.getQueryCache()
        .findAll(filters)
        .filter(({ state }) => state.fetchStatus !== "idle" && state.data === undefined),
    );
    await super.invalidateQueries(filters, options);
    if (loading.size > 0) await super.invalidateQueries({ predicate: (query) => loading.has(query) }, options);
  }
}
