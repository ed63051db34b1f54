import type { ComponentType } from "react";
import { CertificateCard } from "./certificate-card.tsx";
import { GrpcSchemasSection } from "./grpc-schemas-section.tsx";
import { RulesSection } from "./rules-section.tsx";
import type { SettingGroup } from "./setting-model.ts";
import { SocksSection } from "./socks-section.tsx";
import { AutoSaveSection, LogsSection, MirrorSection } from "./status-sections.tsx";
import { StorageCard } from "./storage-card.tsx";
import { UpstreamSection } from "./upstream-section.tsx";

export interface Section {
  readonly id: string;
  readonly title: string;
  readonly Component: ComponentType;
}

export const LEADING_SECTIONS: readonly Section[] = [
  { id: "certificate", title: "Certificate", Component: CertificateCard },
  { id: "storage", title: "Storage", Component: StorageCard },
];

/** Custom sections of setting groups, by group id. */
export const GROUP_SECTIONS: Readonly<Record<string, ComponentType<{ readonly group: SettingGroup }>>> = {
  "auto-save": AutoSaveSection,
  logs: LogsSection,
  mirror: MirrorSection,
  rules: RulesSection,
  socks: SocksSection,
  "upstream-proxy": UpstreamSection,
};

export const TRAILING_SECTIONS: readonly Section[] = [
  { id: "grpc-schemas", title: "gRPC schemas", Component: GrpcSchemasSection },
];
