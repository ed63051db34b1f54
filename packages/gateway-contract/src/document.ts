import { strictObject, Type } from "@headworks/contract-kit";
import type { Static } from "typebox";
import { Consumer } from "./consumers.ts";
import { Admin, Analytics, gatewayFields, GatewaySettings, WebhookTarget } from "./gateway.ts";
import { Listener } from "./listeners.ts";
import { Policy } from "./policies.ts";
import { Route } from "./routes.ts";
import { Service, Upstream } from "./upstreams.ts";

/** The sections of a configuration file. */
export const DocumentSchema = strictObject(
  {
    version: Type.Optional(Type.Literal(1)),
    gateway: Type.Optional(GatewaySettings),
    ...gatewayFields,
    listeners: Type.Optional(Type.Array(Listener)),
    upstreams: Type.Optional(Type.Array(Upstream)),
    services: Type.Optional(Type.Array(Service)),
    routes: Type.Optional(Type.Array(Route)),
    consumers: Type.Optional(Type.Array(Consumer)),
    policies: Type.Optional(Type.Array(Policy)),
    webhooks: Type.Optional(Type.Array(WebhookTarget)),
    admin: Type.Optional(Admin),
    analytics: Type.Optional(Analytics),
  },
  { title: "Configuration of Sluice" },
);

/** A structurally valid document as written. */
export type DocumentInput = Static<typeof DocumentSchema>;

/** A normalized document: `gateway` and all lists exist. Omitted values stay omitted. */
export interface ConfigDocument {
  readonly gateway: GatewaySettings;
  readonly listeners: readonly Listener[];
  readonly upstreams: readonly Upstream[];
  readonly services: readonly Service[];
  readonly routes: readonly Route[];
  readonly consumers: readonly Consumer[];
  readonly policies: readonly Policy[];
  readonly webhooks: readonly WebhookTarget[];
  readonly admin: Admin | undefined;
  readonly analytics: Analytics | undefined;
}
