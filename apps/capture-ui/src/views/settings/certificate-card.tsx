import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Copy, Download, RefreshCw } from "lucide-react";
import { api, operationUrl, operations } from "../../api.ts";
import { Button, IconButton } from "../../ui/button.tsx";
import { copyText } from "../../ui/copy.ts";
import { confirmAction } from "../../ui/dialog.tsx";
import { formatDateTime } from "../../ui/format.ts";
import { Menu } from "../../ui/menu.tsx";
import { ErrorState, Spinner } from "../../ui/states.tsx";
import { Tag } from "../../ui/tag.tsx";
import { toast } from "../../ui/toast.tsx";
import { attempt } from "../../ui/attempt.ts";
import { InterceptionTest } from "./interception-test.tsx";
import { Card } from "../../ui/page.tsx";
import styles from "./settings.module.css";

/** The CA certificate as every screen reads it. */
export const certificateQuery = {
  queryKey: ["cert", "info"] as const,
  queryFn: ({ signal }: { readonly signal: AbortSignal }) => api.cert.getCertificateInfo({ signal }),
};

/** Starts a download of the CA certificate. */
function downloadCertificate(format: "pem" | "der" | "mobileconfig"): void {
  const link = document.createElement("a");
  link.href =
    format === "mobileconfig"
      ? operationUrl(operations.cert.getMobileConfig, {})
      : operationUrl(operations.cert.getCaCertificate, { query: { format } });
  link.download = format === "pem" ? "weir-ca.pem" : format === "der" ? "weir-ca.crt" : "weir-ca.mobileconfig";
  link.click();
}

/** The menu of forms in which the certificate can be had. */
export function CertificateDownload() {
  return (
    <Menu
      trigger={<Button icon={<Download size={14} />}>Download</Button>}
      items={() => [
        {
          kind: "item",
          label: "PEM",
          detail: "For command lines, Linux, most tools",
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
    mutationFn: () => attempt("The certificate was not renewed", () => api.cert.renewCertificate({})),
    onSuccess: async (done) => {
      await client.invalidateQueries({ queryKey: ["cert"] });
      if (done) {
        toast({
          tone: "success",
          title: "There is a new certificate",
          text: "Clients must trust it before they can be intercepted again.",
        });
      }
    },
  });
  const askToRenew = async (): Promise<void> => {
    const sure = await confirmAction({
      title: "Make a new certificate?",
      text: "Every client that trusts the present one refuses intercepted connections until the new one is installed on it.",
      action: "Renew",
      danger: true,
    });
    if (sure) renew.mutate();
  };
  const info = certificate.data;
  return (
    <Card
      id="certificate"
      title="Certificate"
      aside={
        <span className={styles["asideActions"]}>
          <CertificateDownload />
          <Button icon={<RefreshCw size={14} />} disabled={renew.isPending} onClick={() => void askToRenew()}>
            Renew
          </Button>
        </span>
      }
    >
      {certificate.error !== null && (
        <ErrorState
          title="The certificate cannot be read"
          error={certificate.error}
          onRetry={() => void certificate.refetch()}
        />
      )}
      {certificate.isPending && <Spinner label="Reading the certificate" />}
      {info !== undefined && (
        <dl className={styles["facts"]}>
          <dt>Subject</dt>
          <dd>{info.subject}</dd>
          <dt>Fingerprint (SHA-256)</dt>
          <dd className={styles["fingerprint"]}>
            <code>{info.fingerprint_sha256}</code>
            <IconButton
              label="Copy the fingerprint"
              icon={<Copy size={13} />}
              onClick={() => void copyText(info.fingerprint_sha256, "Fingerprint")}
            />
          </dd>
          <dt>Valid</dt>
          <dd>
            {formatDateTime(Date.parse(info.not_before)).slice(0, 10)} to{" "}
            {formatDateTime(Date.parse(info.not_after)).slice(0, 10)}{" "}
            {info.expires_soon && <Tag tone="warning">ends soon</Tag>}
          </dd>
          <dt>File</dt>
          <dd>
            <code>{info.path}</code> {info.imported && <Tag tone="neutral">imported</Tag>}
          </dd>
        </dl>
      )}
      <InterceptionTest />
    </Card>
  );
}
