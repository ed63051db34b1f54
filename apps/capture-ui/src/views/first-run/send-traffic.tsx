import { useState } from "react";
import { Segmented } from "../../ui/segmented.tsx";
import { Command } from "./command.tsx";
import styles from "./first-run.module.css";
import { exportLines, runLine } from "./setup-status.ts";

interface Setup {
  readonly proxy_address: string;
  readonly magic_host: string;
  readonly command: string;
  readonly local_only: boolean;
  readonly qr_svg: string;
  readonly environment: readonly { readonly name: string; readonly value: string }[];
}

type Way = "run" | "terminal" | "device";

/** Ways to send traffic: one command, a terminal, a phone. */
export function SendTraffic({ setup }: { readonly setup: Setup }) {
  const [way, setWay] = useState<Way>("run");
  const [shell, setShell] = useState<"sh" | "powershell" | "cmd">("sh");
  return (
    <>
      <div className={styles["ways"]}>
        <Segmented
          label="Way to send traffic"
          value={way}
          options={[
            { value: "run", label: "One command" },
            { value: "terminal", label: "Terminal" },
            { value: "device", label: "Phone" },
          ]}
          onChange={setWay}
        />
        {way === "terminal" && (
          <Segmented
            label="Shell"
            value={shell}
            options={[
              { value: "sh", label: "sh" },
              { value: "powershell", label: "PowerShell" },
              { value: "cmd", label: "cmd" },
            ]}
            onChange={setShell}
          />
        )}
      </div>
      {way === "run" && (
        <>
          <p className={styles["text"]}>Starts any program with proxy and certificate set, for that program only.</p>
          <Command text={runLine(setup.command, "curl https://example.com")} what="Command" />
          <Command text={runLine(setup.command, "npm test")} what="Command for tests" />
        </>
      )}
      {way === "terminal" && (
        <>
          <p className={styles["text"]}>Everything started from this terminal afterwards goes through Weir.</p>
          <Command text={exportLines(setup.environment, shell)} what="Variables" />
        </>
      )}
      {way === "device" && <Device setup={setup} />}
    </>
  );
}

/** How a phone gets to the set-up page; a code to scan only where scanning it leads anywhere. */
function Device({ setup }: { readonly setup: Setup }) {
  if (setup.local_only) {
    return (
      <p className={styles["text"]}>
        The proxy listens on this machine only. To let a phone in, set Proxy address in the settings to 0.0.0.0, list
        the phone under Allowed clients, and start Weir again.
      </p>
    );
  }
  return (
    <div className={styles["device"]}>
      {/* An image runs nothing, whatever is inside. */}
      <img
        className={styles["qr"]}
        alt="QR code of the set-up page"
        src={`data:image/svg+xml;charset=utf-8,${encodeURIComponent(setup.qr_svg)}`}
      />
      <div className={styles["text"]}>
        <p>
          Scan the code with a phone on the same network; the page leads through the proxy setting and the certificate.
        </p>
        <p>
          With the proxy already set, open <code>{setup.magic_host}</code> on the device.
        </p>
      </div>
    </div>
  );
}
