import type { QueryParameter } from "@headworks/http-fields";
import { Copy } from "lucide-react";
import { IconButton } from "../../ui/button.tsx";
import { copyText } from "../../ui/copy.ts";
import { Switch } from "../../ui/field.tsx";
import { isolatedName } from "../../ui/format.ts";
import styles from "./detail.module.css";
import { useDetailMemory } from "./detail-memory.ts";

/** Names and values of a query or form, decoded or as sent. */
export function ParamTable({
  label,
  parameters,
  empty,
}: {
  readonly label: string;
  readonly parameters: readonly QueryParameter[];
  readonly empty: string;
}) {
  const decoded = useDetailMemory((memory) => memory.decodedParams);
  if (parameters.length === 0) return <p className={styles["none"]}>{empty}</p>;
  return (
    <>
      <div className={styles["tableHead"]}>
        <h2>
          {label} <span className={styles["quiet"]}>{parameters.length}</span>
        </h2>
        <Switch label="Decoded" checked={decoded} onChange={(on) => useDetailMemory.setState({ decodedParams: on })} />
      </div>
      <table className={styles["pairs"]} aria-label={label}>
        <thead className="visually-hidden">
          <tr>
            <th scope="col">Name</th>
            <th scope="col">Value</th>
            <th scope="col">Copy</th>
          </tr>
        </thead>
        <tbody>
          {parameters.map((parameter, index) => (
            // Names may repeat; the index identifies the row.
            <tr key={`${index}-${parameter.rawName}`}>
              <th scope="row">{decoded ? parameter.name : parameter.rawName}</th>
              <td>{decoded ? parameter.value : (parameter.rawValue ?? "")}</td>
              <td className={styles["rowAction"]}>
                <IconButton
                  label={`Copy ${isolatedName(parameter.name)}`}
                  icon={<Copy size={13} />}
                  onClick={() => void copyText(decoded ? parameter.value : (parameter.rawValue ?? ""), "Value")}
                />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}
