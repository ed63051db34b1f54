import type { certOperations } from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import { ApiError } from "#api/api-error.ts";
import type { SliceHost } from "#slice.ts";
import { AuthorityStoreError } from "./authority-store.ts";
import type { AuthorityStore } from "./authority-store.ts";
import { mobileConfig } from "./mobile-config.ts";
import { certificateInfo, setupData } from "./setup-data.ts";

interface ProbeStep {
  readonly name: string;
  readonly ok: boolean;
  readonly detail: string;
}

/**
 * Sends one HTTPS request through a proxy, trusting only the given CA; returns the steps up to and including the first
 * failure. Never rejects.
 */
export type InterceptionProbe = (request: {
  readonly proxyAddress: string;
  readonly url: string;
  readonly caPem: string;
  readonly signal: AbortSignal;
}) => Promise<ProbeStep[]>;

export interface CertOperationsParts {
  readonly authority: AuthorityStore;
  readonly probe: InterceptionProbe;
}

const CHECK_URL = "https://weir/check";

export function createCertOperations(
  host: Pick<SliceHost, "addresses" | "command" | "settings" | "clock" | "events">,
  { authority, probe }: CertOperationsParts,
): Handlers<typeof certOperations> {
  return {
    getCaCertificate: ({ query }) => {
      if (!host.settings.running.intercept_https) {
        throw new ApiError("NOT_FOUND", "HTTPS interception is off, so no CA certificate is in use");
      }
      const { certificatePem, certificateDer } = authority.current;
      const headers = { "Content-Disposition": 'attachment; filename="weir-ca.crt"' };
      return { status: 200, headers, body: query.format === "der" ? certificateDer : certificatePem };
    },
    getCertificateInfo: () => ({ status: 200, body: certificateInfo(authority, host.clock.now()) }),
    getMobileConfig: () => ({
      status: 200,
      headers: { "Content-Disposition": 'attachment; filename="weir.mobileconfig"' },
      body: mobileConfig(authority.current),
    }),
    renewCertificate: () => {
      renew(authority);
      host.events.changed("cert");
      return { status: 200, body: certificateInfo(authority, host.clock.now()) };
    },
    getSetup: () => {
      const data = setupData(host, authority);
      return {
        status: 200,
        body: {
          proxy_address: data.proxyAddress,
          api_address: data.apiAddress,
          magic_host: data.magicHost,
          command: host.command,
          local_only: data.isLocalOnly,
          qr_svg: data.qrSvg,
          platforms: data.platforms.map(({ steps, ...platform }) => ({ ...platform, steps: [...steps] })),
          environment: data.environment.map(({ name, value }) => ({ name, value })),
        },
      };
    },
    testInterception: async ({ signal }) => {
      const { intercept_https: isOn } = host.settings.running;
      const setting = {
        name: "HTTPS interception is on",
        ok: isOn,
        detail: isOn ? "intercept_https is true" : "intercept_https is false",
      };
      const proxyAddress = setupData(host, authority).proxyAddress;
      const steps = await probe({ proxyAddress, url: CHECK_URL, caPem: authority.current.certificatePem, signal });
      const all = [setting, ...steps];
      return { status: 200, body: { ok: all.every((step) => step.ok), steps: all.map((step) => ({ ...step })) } };
    },
  };
}

function renew(authority: AuthorityStore): void {
  try {
    authority.renew();
  } catch (cause) {
    if (cause instanceof AuthorityStoreError) throw new ApiError("CONFLICT", cause.message, { cause });
    throw new ApiError(
      "SERVICE_UNAVAILABLE",
      `The new CA cannot be saved: ${(cause as NodeJS.ErrnoException).code ?? "unknown error"}`,
      { cause },
    );
  }
}
