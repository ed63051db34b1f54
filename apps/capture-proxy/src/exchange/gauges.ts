/** Live counters of the data path, exported by metrics. */
export interface TrafficGauges {
  readonly activeConnections: number;
  readonly activeExchanges: number;
  readonly activeTunnels: number;
  readonly tunnelsTotal: number;
  readonly tlsHandshakesTotal: number;
  readonly tlsHandshakesFailed: number;
  readonly upstreamConnections: number;
  readonly idleUpstreamConnections: number;
  readonly pendingRequests: number;
}

/** The writable view. */
export type MutableGauges = {
  -readonly [K in Exclude<keyof TrafficGauges, "idleUpstreamConnections">]: TrafficGauges[K];
} & Pick<TrafficGauges, "idleUpstreamConnections">;

export function newGauges(): MutableGauges {
  return {
    activeConnections: 0,
    activeExchanges: 0,
    activeTunnels: 0,
    tunnelsTotal: 0,
    tlsHandshakesTotal: 0,
    tlsHandshakesFailed: 0,
    upstreamConnections: 0,
    get idleUpstreamConnections() {
      return Math.max(0, this.upstreamConnections + this.pendingRequests - this.activeExchanges);
    },
    pendingRequests: 0,
  };
}
