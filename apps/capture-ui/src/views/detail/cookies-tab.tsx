import type { TrafficEntry } from "@headworks/capture-contract";
import { utf8Reading } from "@headworks/http-fields";
import { Fragment } from "react";
import { Tag } from "../../ui/tag.tsx";
import { cookieConcerns, cookieLife, receivedCookies, sentCookies } from "./cookie-rows.ts";
import styles from "./detail.module.css";

/** Cookies in both directions with their attributes. */
export function CookiesTab({ entry }: { readonly entry: TrafficEntry }) {
  const sent = sentCookies(entry);
  const received = receivedCookies(entry);
  const receivedMs = Date.parse(entry.timestamp) + (entry.response?.duration_ms ?? 0);
  const isSecure = /^(?:https|wss):/iu.test(entry.request.url);
  return (
    <div className={styles["body"]}>
      <section className={styles["section"]}>
        <h2>
          Sent with the request <span className={styles["quiet"]}>{sent.length}</span>
        </h2>
        {sent.length === 0 ? (
          <p className={styles["none"]}>No cookies were sent.</p>
        ) : (
          <table className={styles["pairs"]} aria-label="Sent cookies">
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col">Value</th>
              </tr>
            </thead>
            <tbody>
              {sent.map((cookie, index) => (
                <tr key={`${index}-${cookie.name}`}>
                  <th scope="row">{cookie.name}</th>
                  <td>{utf8Reading(cookie.value) ?? cookie.value}</td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </section>
      <section className={styles["section"]}>
        <h2>
          Set by the response <span className={styles["quiet"]}>{received.length}</span>
        </h2>
        {received.length === 0 ? (
          <p className={styles["none"]}>No cookies were set.</p>
        ) : (
          // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reachable by keyboard
          <div className={styles["cookieTable"]} tabIndex={0} role="group" aria-label="Cookies that were set">
            <table className={styles["pairs"]}>
              <thead>
                <tr>
                  <th scope="col">Name</th>
                  <th scope="col">Value</th>
                  <th scope="col">Lives</th>
                  <th scope="col">Domain and path</th>
                  <th scope="col">Attributes</th>
                </tr>
              </thead>
              <tbody>
                {received.map((cookie, index) => {
                  const concerns = cookieConcerns(cookie, isSecure);
                  return (
                    <Fragment key={`${index}-${cookie.name}`}>
                      <tr>
                        <th scope="row">{cookie.name}</th>
                        <td>{utf8Reading(cookie.value) ?? cookie.value}</td>
                        <td>{cookieLife(cookie, receivedMs)}</td>
                        <td>
                          {cookie.domain ?? "this host"}
                          {cookie.path === undefined ? "" : `, ${cookie.path}`}
                        </td>
                        <td>
                          <span className={styles["cookieTags"]}>
                            {cookie.httpOnly && <Tag tone="ok">HttpOnly</Tag>}
                            {cookie.secure && <Tag tone="ok">Secure</Tag>}
                            {cookie.sameSite !== undefined && <Tag tone="neutral">SameSite={cookie.sameSite}</Tag>}
                            {cookie.partitioned && <Tag tone="neutral">Partitioned</Tag>}
                          </span>
                        </td>
                      </tr>
                      {concerns.length > 0 && (
                        // Sentences: in a column they would leave no room for the others.
                        <tr className={styles["concerns"]}>
                          <td colSpan={5}>{concerns.join("\n")}</td>
                        </tr>
                      )}
                    </Fragment>
                  );
                })}
              </tbody>
            </table>
          </div>
        )}
      </section>
    </div>
  );
}
