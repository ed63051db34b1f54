import { useQuery } from "@tanstack/react-query";
import { Copy } from "lucide-react";
import { configQuery, fieldsQuery } from "../../queries.ts";
import { IconButton } from "../../ui/button.tsx";
import { copyText } from "../../ui/copy.ts";
import { Card } from "../../ui/page.tsx";
import { socksAddress, socksStatus } from "./section-status.ts";
import { Fact, Facts, Problem, StatusLine } from "./section.tsx";
import { ConfigForm } from "./setting-group.tsx";
import type { SettingGroup } from "./setting-model.ts";
import styles from "./settings.module.css";

export function SocksSection({ group }: { readonly group: SettingGroup }) {
  const fields = useQuery(fieldsQuery).data ?? [];
  const config = useQuery(configQuery);
  const status = socksStatus(fields);
  const address = socksAddress(fields, config.data?.shown_host ?? "127.0.0.1");
  return (
    <Card id={group.id} title={group.title}>
      <div className={styles["section"]}>
        <StatusLine tone={status.tone}>{status.text}</StatusLine>
        {address?.isOpen === true && (
          <Problem>
            Any host that can reach this machine can use this proxy. Set a user name and password, or restrict Allowed
            clients under Listeners.
          </Problem>
        )}
        {address !== null && (
          <Facts>
            <Fact name="Client address">
              <span className={styles["copied"]}>
                <code>{address.url}</code>
                <IconButton
                  label="Copy SOCKS address"
                  icon={<Copy size={13} />}
                  onClick={() => void copyText(address.url, "SOCKS address")}
                />
              </span>
            </Fact>
          </Facts>
        )}
        <p className={styles["quiet"]}>
          SOCKS traffic is forwarded without being decoded; each connection is recorded with destination, duration and
          size.
        </p>
        <ConfigForm group={group} />
      </div>
    </Card>
  );
}
