import { DEFAULT_BUFFERED_BYTES, type ConfigDocument, type Route, type Service } from "@headworks/gateway-contract";
import { parseCookies } from "@headworks/http-fields";
import { fieldValues } from "@headworks/http1";
import type { CompiledActions } from "#config/compile.ts";
import type { RequestContext } from "#request/context.ts";
import { compileResponseAction } from "#routing/actions.ts";
import { compileRewrite } from "#routing/rewrite.ts";
import type { EndpointPools } from "#upstream/endpoint-pools.ts";
import { compileService } from "#upstream/service-choice.ts";
import type { UpstreamRegistry } from "#upstream/upstream-registry.ts";

/** What the routes of a document do, with the upstreams that live on from generation to generation. */
export function compileActions(
  document: ConfigDocument,
  upstreams: UpstreamRegistry,
  pools: EndpointPools,
): Required<CompiledActions> {
  const compiled = new Map(
    document.upstreams.map((upstream) => [upstream.name, { document: upstream, group: upstreams.prepare(upstream) }]),
  );
  const services = new Map(
    document.services.map((service: Service) => [
      service.name,
      compileService(service, (name) => {
        const upstream = compiled.get(name);
        if (upstream === undefined) throw new Error(`There is no upstream ${name}`);
        return upstream;
      }),
    ]),
  );
  return {
    actionFor: (route: Route) => {
      if (route.action.type !== "proxy") return { kind: "answer", response: compileResponseAction(route) };
      const choose = services.get(route.service ?? "");
      if (choose === undefined) throw new Error(`There is no service ${route.service}`);
      return {
        kind: "proxy",
        choose: (request) => choose({ requestId: request.requestId, cookie: (name) => cookieOf(request, name) }),
        rewrite: compileRewrite(route),
        changeFields: undefined,
      };
    },
    published: () => {
      upstreams.published(document.upstreams);
      pools.published(upstreams.all);
      pools.buffers.adopt(document.gateway.max_buffered_bytes ?? DEFAULT_BUFFERED_BYTES);
    },
  };
}

function cookieOf(request: RequestContext, name: string): string | undefined {
  for (const line of fieldValues(request.fields, "cookie")) {
    const found = parseCookies(line).find((cookie) => cookie.name === name);
    if (found !== undefined) return found.value;
  }
  return undefined;
}
