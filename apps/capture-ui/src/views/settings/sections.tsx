import type { ComponentType } from "react";
import { AutoSaveSection } from "./auto-save-section.tsx";
import { CertificateCard } from "./certificate-card.tsx";
import { GrpcSchemasSection } from "./grpc-schemas-section.tsx";
import { LogsSection } from "./logs-section.tsx";
import { MirrorSection } from "./mirror-section.tsx";
import { RulesSection } from "./rules-section.tsx";
import type { SettingGroup } from "./setting-model.ts";
import { SocksSection } from "./socks-section.tsx";
import { StorageCard } from "./storage-card.tsx";
import { UpstreamSection } from "./upstream-section.tsx";

/** A part of Settings with a heading and an anchor of its own. */
export interface Section {
  readonly id: string;
  readonly title: string;
  readonly Component: ComponentType;
}

/** What comes before the groups of settings. */
export const LEADING_SECTIONS: readonly Section[] = [
  { id: "certificate", title: "Certificate", Component: CertificateCard },
  { id: "storage", title: "Storage", Component: StorageCard },
];

/** Groups of settings that show more than their fields, by the group's id. */
export const GROUP_SECTIONS: Readonly<Record<string, ComponentType<{ readonly group: SettingGroup }>>> = {
  "auto-save": AutoSaveSection,
  logs: LogsSection,
  mirror: MirrorSection,
  rules: RulesSection,
  socks: SocksSection,
  "upstream-proxy": UpstreamSection,
};

/** What comes after the groups of settings. */
export const TRAILING_SECTIONS: readonly Section[] = [
  { id: "grpc-schemas", title: "gRPC schemas", Component: GrpcSchemasSection },
];
