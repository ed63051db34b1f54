import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Select } from "../../ui/field.tsx";
import { Pill } from "../../ui/pill.tsx";
import { CertificateDownload, certificateQuery } from "../settings/certificate-card.tsx";
import { Command } from "./command.tsx";
import styles from "./first-run.module.css";
import { guessPlatform } from "./setup-status.ts";

export interface Platform {
  readonly id: string;
  readonly name: string;
  readonly steps: readonly string[];
  readonly command?: string;
}

/** How each system, browser and runtime is made to trust the certificate. */
export function TrustGuide({ platforms }: { readonly platforms: readonly Platform[] }) {
  const certificate = useQuery(certificateQuery);
  const [chosen, setChosen] = useState(() =>
    guessPlatform(
      navigator.userAgent,
      platforms.map((platform) => platform.id),
    ),
  );
  const platform = platforms.find(({ id }) => id === chosen) ?? platforms[0];
  return (
    <>
      <div className={styles["platforms"]} role="group" aria-label="System">
        {platforms.map(({ id, name }) => (
          <Pill key={id} pressed={id === platform?.id} onClick={() => setChosen(id)}>
            {name}
          </Pill>
        ))}
      </div>
      <div className={styles["platformSelect"]}>
        <Select
          aria-label="System"
          value={platform?.id ?? ""}
          options={platforms.map(({ id, name }) => ({ value: id, label: name }))}
          onChange={setChosen}
        />
      </div>
      {platform !== undefined && (
        <div className={styles["guide"]}>
          <ol className={styles["instructions"]}>
            {platform.steps.map((step) => (
              <li key={step}>{step}</li>
            ))}
          </ol>
          {platform.command !== undefined && <Command text={platform.command} what={`Command for ${platform.name}`} />}
        </div>
      )}
      <div className={styles["certificate"]}>
        <CertificateDownload />
        {certificate.data !== undefined && (
          <div className={styles["fingerprint"]}>
            <span className={styles["quiet"]}>Fingerprint (SHA-256)</span>
            <code>{certificate.data.fingerprint_sha256}</code>
          </div>
        )}
      </div>
    </>
  );
}
