import type { SsrfFilter } from "@headworks/gateway-contract";
import {
  embeddedIpv4,
  networkContains,
  parseAddress,
  parseNetwork,
  type IpAddress,
  type IpNetwork,
} from "@headworks/host-patterns";

export type EgressVerdict = "permitted" | "denied" | "unreadable";

/** The unspecified address reaches this host (Linux and others connect it to loopback). */
const thisHost: readonly IpAddress[] = ["127.0.0.1", "::1"]
  .map((text) => parseAddress(text))
  .filter((address) => address !== undefined);

/**
 * Decides which addresses may be dialled (specification, Egress filter). An address is checked in every form in which
 * it can be reached: as it is, unspecified ones as loopback, and with `normalize_embedded_ipv4` (the default) also by
 * the IPv4 address that a translator or tunnel would extract. One denied form that is not allowed denies the address,
 * so allowing a translator's prefix does not allow the addresses behind it.
 */
export class EgressFilter {
  readonly #deny: readonly IpNetwork[];
  readonly #allow: readonly IpNetwork[];
  readonly #judgesEmbedded: boolean;

  /** Takes a validated block; entries that are no networks are skipped. */
  constructor(document: SsrfFilter) {
    this.#deny = networksOf(document.deny);
    this.#allow = [...networksOf(document.allow), ...networksOf(document.allowlist)];
    this.#judgesEmbedded = document.normalize_embedded_ipv4 ?? true;
  }

  /** Checks one address; other texts are `unreadable` and must not be dialled. */
  judge(text: string): EgressVerdict {
    const address = parseAddress(text);
    if (address === undefined) return "unreadable";
    return this.#formsOf(address).some((form) => this.#isDenied(form)) ? "denied" : "permitted";
  }

  #formsOf(address: IpAddress): IpAddress[] {
    const forms = [address, ...(this.#judgesEmbedded ? embeddedIpv4(address) : [])];
    // Dialling ::ffff:a.b.c.d makes an IPv4 connection, so it is checked as one whatever the setting.
    if (address.version === 6 && address.value >> 32n === 0xffffn) forms.push({ version: 4, value: address.value });
    return forms.flatMap((form) => (isUnspecifiedValue(form) ? [form, ...thisHost] : [form]));
  }

  #isDenied(address: IpAddress): boolean {
    const isIn = (network: IpNetwork): boolean => networkContains(network, address);
    return this.#deny.some(isIn) && !this.#allow.some(isIn);
  }
}

/** Whether a block enables the filter: it does unless it says otherwise. */
export const isEnabled = (document: SsrfFilter | undefined): document is SsrfFilter =>
  document !== undefined && document.enabled !== false;

function isUnspecifiedValue(address: IpAddress): boolean {
  return address.value === 0n || address.value === 0xffffn << 32n;
}

function networksOf(texts: readonly string[] | undefined): IpNetwork[] {
  return (texts ?? []).map((text) => parseNetwork(text)).filter((network) => network !== undefined);
}
