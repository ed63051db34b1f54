import { lookup } from "node:dns/promises";

/** Finds all addresses of a name; rejects or gives none when there are none. */
export type NameLookup = (host: string) => Promise<readonly string[]>;

/** The system's way: its hosts file, its resolvers, its order. No proxy variable has a say in it. */
export const systemLookup: NameLookup = async (host) => {
  const found = await lookup(host, { all: true, order: "verbatim" });
  return found.map(({ address }) => address);
};

/**
 * Lets those who ask for a name while it is being looked up wait for the same answer. The system's lookup cannot be
 * cancelled and holds a thread of the pool until it is over, so a name whose servers hang must not hold more than one.
 */
export function oneAtATime(find: NameLookup): NameLookup {
  const running = new Map<string, Promise<readonly string[]>>();
  return async (host) => {
    const present = running.get(host);
    if (present !== undefined) return await present;
    const started = find(host).finally(() => running.delete(host));
    running.set(host, started);
    return await started;
  };
}
