import type { ClientFacts } from "#exchange/exchange.ts";
import type { Failure } from "#exchange/failure.ts";
import type { ProxyServices } from "./proxy-services.ts";
import { entryStatusOf, entryText, replyOf } from "./socks5-reply.ts";
import { TunnelExchange } from "./tunnel-exchange.ts";

/** The entry of a SOCKS5 CONNECT. Nothing but its target is known of the request, and nothing but its end of the answer. */
export class Socks5Exchange extends TunnelExchange {
  constructor(services: ProxyServices, client: ClientFacts, target: { readonly host: string; readonly port: number }) {
    super(services, client, { ...target, fields: [], version: "SOCKS5" });
  }

  protected override replyTo(failure: Failure): { readonly status: number; readonly text: string } {
    return { status: entryStatusOf(failure), text: entryText(replyOf(failure), failure) };
  }
}
