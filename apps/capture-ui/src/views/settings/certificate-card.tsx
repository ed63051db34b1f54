import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Copy, Download, RefreshCw } from "lucide-react";
import { api, operationUrl, operations } from "../../api.ts";
import { Button, IconButton } from "../../ui/button.tsx";
import { copyText } from "../../ui/copy.ts";
import { confirmAction } from "../../ui/dialog.tsx";
import { formatDateTime } from "../../ui/format.ts";
import { Menu } from "../../ui/menu.tsx";
import { Tag } from "../../ui/tag.tsx";
import { attempt, toast } from "../../ui/toast.tsx";
import { InterceptionTest } from "./test-steps.tsx";
import { Fact, Facts, LiveSection, SectionActions } from "./section.tsx";
import styles from "./settings.module.css";

/** Query of the CA certificate, shared by all screens. */
export const certificateQuery = {
  queryKey: ["cert", "info"] as const,
  queryFn: ({ signal }: { readonly signal: AbortSignal }) => api.cert.getCertificateInfo({ signal }),
};

function downloadCertificate(format: "pem" | "der" | "mobileconfig"): void {
  const link = document.createElement("a");
  link.href =
    format === "mobileconfig"
      ? operationUrl(operations.cert.getMobileConfig, {})
      : operationUrl(operations.cert.getCaCertificate, { query: { format } });
  link.download = format === "pem" ? "weir-ca.pem" : format === "der" ? "weir-ca.crt" : "weir-ca.mobileconfig";
  link.click();
}

/** Download menu with the formats of the certificate. */
export function CertificateDownload() {
  return (
    <Menu
      trigger={<Button icon={<Download size={14} />}>Download</Button>}
      items={() => [
        {
          kind: "item",
          label: "PEM",
          detail: "For command-line tools and Linux",
          onSelect: () => downloadCertificate("pem"),
        },
        {
          kind: "item",
          label: "DER (.crt)",
          detail: "For Windows and Android",
          onSelect: () => downloadCertificate("der"),
        },
        {
          kind: "item",
          label: "Apple profile",
          detail: "For iPhone, iPad and macOS",
          onSelect: () => downloadCertificate("mobileconfig"),
        },
      ]}
    />
  );
}

/** Fingerprint and validity of the CA certificate; download, renewal and a test. */
export function CertificateCard() {
  const client = useQueryClient();
  const certificate = useQuery(certificateQuery);
  const renew = useMutation({
    mutationFn: () => attempt("Could not renew the certificate", () => api.cert.renewCertificate({})),
    onSuccess: async (done) => {
      await client.invalidateQueries({ queryKey: ["cert"] });
      if (done) {
        toast({
          tone: "success",
          title: "New certificate created",
          text: "Clients must trust it before their traffic can be decrypted again.",
        });
      }
    },
  });
  const askToRenew = async (): Promise<void> => {
    const sure = await confirmAction({
      title: "Create a new certificate?",
      text: "Clients that trust the current certificate reject decrypted connections until the new one is installed.",
      action: "Renew",
      danger: true,
    });
    if (sure) renew.mutate();
  };
  return (
    <LiveSection
      id="certificate"
      title="Certificate"
      query={certificate}
      aside={
        <SectionActions>
          <CertificateDownload />
          <Button icon={<RefreshCw size={14} />} disabled={renew.isPending} onClick={() => void askToRenew()}>
            Renew
          </Button>
        </SectionActions>
      }
    >
      {(info) => (
        <>
          <Facts>
            <Fact name="Subject">{info.subject}</Fact>
            <Fact name="Fingerprint (SHA-256)">
              <span className={styles["copied"]}>
                <code>{info.fingerprint_sha256}</code>
                <IconButton
                  label="Copy fingerprint"
                  icon={<Copy size={13} />}
                  onClick={() => void copyText(info.fingerprint_sha256, "Fingerprint")}
                />
              </span>
            </Fact>
            <Fact name="Valid">
              {formatDateTime(Date.parse(info.not_before)).slice(0, 10)} to{" "}
              {formatDateTime(Date.parse(info.not_after)).slice(0, 10)}{" "}
              {info.expires_soon && <Tag tone="warning">expires soon</Tag>}
            </Fact>
            <Fact name="File">
              <code>{info.path}</code> {info.imported && <Tag tone="neutral">imported</Tag>}
            </Fact>
          </Facts>
          <InterceptionTest />
        </>
      )}
    </LiveSection>
  );
}
