import type { certOperations } from "@headworks/capture-contract";
import type { SyntheticResponse } from "#exchange/phases.ts";
import type { Slice, SliceHost } from "#slice.ts";
import { createCertOperations } from "./cert.operations.ts";
import type { CertOperationsParts } from "./cert.operations.ts";
import { handleMagicHost } from "./magic-host.ts";
import type { OwnRequest } from "./magic-host.ts";
import { setupData } from "./setup-data.ts";
import { renderSetupPage, setupPagePolicy } from "./setup-page.ts";

export { AuthorityStoreError, openAuthorityStore } from "./authority-store.ts";
export type { AuthorityStore } from "./authority-store.ts";

/** The slice, and the pages it gives to the proxy and to the API's port. */
export interface CertSlice extends Slice<typeof certOperations> {
  /** For requests to `http://weir/` and to the proxy's own address. */
  readonly handleMagicHost: (request: OwnRequest) => SyntheticResponse;
  /** The same page for `/setup` on the API's port. */
  readonly setupPage: {
    readonly path: string;
    readonly render: () => { readonly html: string; readonly contentSecurityPolicy: string };
  };
}

/** The CA certificate, how to trust it, and whether that works. */
export function createCertSlice(host: SliceHost, parts: CertOperationsParts): CertSlice {
  const { authority } = parts;
  const data = () => setupData(host, authority);
  const links = {
    pem: "/api/cert/ca",
    der: "/api/cert/ca?format=der",
    mobileConfig: "/api/cert/mobileconfig",
    check: "https://weir/check",
    ui: "/",
  };
  return {
    name: "cert",
    operations: createCertOperations(host, parts),
    handleMagicHost: (request) => handleMagicHost({ authority: () => authority.current, data }, request),
    setupPage: {
      path: "/setup",
      render: () => ({ html: renderSetupPage(data(), links), contentSecurityPolicy: setupPagePolicy() }),
    },
  };
}
