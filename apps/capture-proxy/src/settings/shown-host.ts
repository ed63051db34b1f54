import { parseAddress } from "@headworks/host-patterns";

/** One address of a network interface, as `os.networkInterfaces` lists it. */
export interface InterfaceAddress {
  readonly address: string;
  readonly family: string;
  readonly internal: boolean;
}

/** Bridges and virtual pairs of container engines: no phone can reach them. */
const CONTAINER_INTERFACE = /^(?:docker|br-|veth|virbr|cni|flannel|podman)/;

/** Home and office networks in the order in which phones are likely to be in them. */
const PRIVATE_RANGES: readonly RegExp[] = [/^192\.168\./, /^10\./, /^172\.(?:1[6-9]|2\d|3[01])\./];

/**
 * The address to give to devices: `public_ip`, the private IPv4 address of this machine (192.168 before 10 before
 * 172.16–31), or the address the proxy is bound to.
 */
export function shownHost(
  settings: { readonly public_ip: string | null; readonly host: string },
  interfaces: Readonly<Record<string, readonly InterfaceAddress[] | undefined>>,
): string {
  if (settings.public_ip !== null) return settings.public_ip;
  const addresses = Object.entries(interfaces)
    .filter(([name]) => !CONTAINER_INTERFACE.test(name))
    .flatMap(([, list]) => list ?? [])
    .filter((entry) => entry.family === "IPv4" && !entry.internal && parseAddress(entry.address)?.version === 4)
    .map((entry) => entry.address);
  for (const range of PRIVATE_RANGES) {
    const found = addresses.find((address) => range.test(address));
    if (found !== undefined) return found;
  }
  return settings.host;
}
