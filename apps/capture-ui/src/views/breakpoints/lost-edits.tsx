import type { PausedItem } from "@headworks/capture-contract";
import { useState } from "react";
import { api } from "../../api.ts";
import { markedBody } from "../../rules/body-draft.ts";
import { headersList } from "../../rules/headers-draft.ts";
import { keepDraft, keptDraft, keptNames } from "../../rules/kept-drafts.ts";
import { idOfPaused, PAUSED } from "../../shell/notices.ts";
import { navigate } from "../../shell/router.ts";
import { attempt } from "../../ui/attempt.ts";
import { Button } from "../../ui/button.tsx";
import { copyText } from "../../ui/copy.ts";
import { isolatedName } from "../../ui/isolated-name.ts";
import styles from "./breakpoints.module.css";
import { draftText, type PausedDraft } from "./paused-draft.ts";

/** Edits of messages that wait no longer: nothing of them was sent, and nothing is thrown away unasked. */
export function LostEdits({ paused }: { readonly paused: readonly PausedItem[] | undefined }) {
  const [, redraw] = useState(0);
  if (paused === undefined) return null;
  const waiting = new Set(paused.map(({ id }) => id));
  const lost = keptNames(PAUSED).filter((name) => !waiting.has(idOfPaused(name)));
  const discard = (name: string): void => {
    keepDraft(name, null);
    redraw((count) => count + 1);
  };
  return (
    <>
      {lost.map((name) => (
        <LostEdit key={name} name={name} onDone={() => discard(name)} />
      ))}
    </>
  );
}

function LostEdit({ name, onDone }: { readonly name: string; readonly onDone: () => void }) {
  const draft = keptDraft<PausedDraft>(name)?.draft;
  if (draft === undefined) return null;
  const replay = async (): Promise<void> => {
    await attempt("The request could not be saved", async () => {
      const { id } = await api.replay.saveRequest({
        body: {
          request: {
            method: draft.method.trim(),
            url: draft.url.trim(),
            headers_list: headersList(draft.headers),
            body: draft.body.text === "" ? null : markedBody(draft.body),
          },
        },
      });
      onDone();
      navigate(`/replay?id=${encodeURIComponent(id)}`);
    });
  };
  const isRequest = draft.side === "request";
  return (
    <div className={styles["lost"]} role="status">
      <p>
        <b>Your edits were not sent.</b> {isRequest ? "The request" : "The response"} waits no longer:{" "}
        <code>
          {isRequest ? `${draft.method} ` : ""}
          {isolatedName(isRequest ? draft.url : `${draft.status} for ${draft.url}`)}
        </code>{" "}
        {isRequest && !draft.hasBody ? "Its body was not shown here, so it is not part of the edits." : ""}
      </p>
      <span className={styles["lostActions"]}>
        {isRequest && draft.hasBody && (
          <Button variant="primary" onClick={() => void replay()}>
            Send as replay…
          </Button>
        )}
        <Button onClick={() => void copyText(draftText(draft), isRequest ? "Request" : "Response")}>Copy</Button>
        <Button onClick={onDone}>Discard</Button>
      </span>
    </div>
  );
}
