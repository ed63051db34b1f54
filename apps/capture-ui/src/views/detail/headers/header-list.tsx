import { utf8Reading } from "@headworks/http-fields";
import { ChevronRight, Copy, ListTree } from "lucide-react";
import { useId, useLayoutEffect, useRef, useState } from "react";
import { Button, IconButton } from "../../../ui/button.tsx";
import { classNames } from "../../../ui/class-names.ts";
import { copyText } from "../../../ui/copy.ts";
import { TextInput } from "../../../ui/field.tsx";
import { Tag } from "../../../ui/tag.tsx";
import styles from "../detail.module.css";
import { useDetailMemory } from "../detail-memory.ts";
import { decodeValue } from "./decoded-value.ts";
import { groupHeaders, headerLines, headersAsText } from "./header-groups.ts";
import type { HeaderLine } from "./header-groups.ts";
import { headerNote } from "./header-notes.ts";

type Headers = readonly (readonly [string, string])[];

/** Headers of a message with search, explanations and decoded values. */
export function HeaderList({
  title,
  headers,
  trailers,
}: {
  readonly title: string;
  readonly headers: Headers;
  readonly trailers?: Headers | undefined;
}) {
  const [search, setSearch] = useState("");
  const grouped = useDetailMemory((memory) => memory.groupHeaders);
  const lines = headerLines(headers, search);
  const isOpen = useDetailMemory((memory) => memory.fieldsOpen);
  const groups = grouped ? groupHeaders(lines) : [{ title: "", lines }];
  const shownGroups = isOpen ? groups : [];
  return (
    <>
      <div className={styles["sideHead"]}>
        <h2>
          <button
            type="button"
            className={styles["fold"]}
            aria-expanded={isOpen}
            onClick={() => useDetailMemory.setState({ fieldsOpen: !isOpen })}
          >
            <ChevronRight size={12} style={{ rotate: isOpen ? "90deg" : "0deg" }} aria-hidden />
            {title} <span className={styles["quiet"]}>{headers.length}</span>
            <span className="visually-hidden">headers</span>
          </button>
        </h2>
        <span className={styles["grow"]} />
        {isOpen && headers.length > 5 && (
          <TextInput
            className={styles["filter"]}
            type="search"
            placeholder="Find header"
            aria-label={`Find in ${title.toLowerCase()} headers`}
            value={search}
            onChange={(event) => setSearch(event.target.value)}
            onKeyDown={(event) => {
              if (event.key !== "Escape" || search === "") return;
              event.stopPropagation();
              setSearch("");
            }}
          />
        )}
        <IconButton
          label="Group by topic"
          icon={<ListTree size={14} />}
          pressed={grouped}
          onClick={() => useDetailMemory.setState({ groupHeaders: !grouped })}
        />
        <IconButton
          label="Copy all headers"
          icon={<Copy size={14} />}
          onClick={() => void copyText(headersAsText(headers), "Headers")}
        />
      </div>
      {isOpen && lines.length === 0 && (
        <p className={styles["none"]}>{headers.length === 0 ? "No headers" : "No matching headers"}</p>
      )}
      {shownGroups.map((group) => (
        <div key={group.title}>
          {group.title !== "" && <h3 className={styles["groupTitle"]}>{group.title}</h3>}
          <dl className={styles["fields"]}>
            {group.lines.map((line) => (
              <HeaderField key={line.position} line={line} />
            ))}
          </dl>
        </div>
      ))}
      {isOpen && trailers !== undefined && trailers.length > 0 && (
        <>
          <h3 className={styles["groupTitle"]}>Trailers</h3>
          <dl className={styles["fields"]}>
            {headerLines(trailers).map((line) => (
              <HeaderField key={line.position} line={line} />
            ))}
          </dl>
        </>
      )}
    </>
  );
}

const LONG_VALUE = 600;

function HeaderField({ line }: { readonly line: HeaderLine }) {
  const [open, setOpen] = useState(false);
  const [whole, setWhole] = useState(false);
  const [nowMs] = useState(() => Date.now());
  const note = headerNote(line.name);
  const decoded = decodeValue(line.name, line.value, nowMs);
  const text = line.reading ?? line.value;
  const isLong = text.length > LONG_VALUE && !whole;
  // Long tokens are truncated, since the decoded form follows; copying yields the full value.
  const isFolded = decoded !== null && decoded.mark.startsWith("JWT") && text.length > 40 && !whole;
  const shown = isFolded ? `${text.slice(0, 22)}…` : isLong ? `${text.slice(0, LONG_VALUE)}…` : text;
  return (
    <div className={styles["field"]}>
      <dt>{note === null ? line.name : <Explained name={line.name} note={note} />}</dt>
      <dd>
        {shown}{" "}
        {(isLong && !isFolded) || (isFolded && open) ? (
          <Button variant="ghost" onClick={() => setWhole(true)}>
            Show all
          </Button>
        ) : null}
        {line.reading !== undefined && (
          <Tag tone="neutral" title={`Decoded as UTF-8. In Latin-1, as copied: ${line.value}`}>
            UTF-8
          </Tag>
        )}
        {decoded !== null && (
          <button type="button" className={styles["markButton"]} aria-expanded={open} onClick={() => setOpen(!open)}>
            <Tag tone={decoded.tone}>
              <ChevronRight size={10} style={{ rotate: open ? "90deg" : "0deg" }} aria-hidden />
              {decoded.mark}
            </Tag>
          </button>
        )}
      </dd>
      <dd className={styles["fieldAction"]}>
        <Button
          variant="ghost"
          aria-label={`Copy ${line.name}`}
          title={`Copy ${line.name}`}
          icon={<Copy size={12} />}
          onClick={() => void copyText(line.value, line.name)}
        />
      </dd>
      {open && decoded !== null && (
        <dd className={classNames(styles["decoded"])}>
          {decoded.details.map(([name, value], index) => (
            // Cookies of the same name may repeat.
            <DecodedLine key={`${index}-${name}`} name={name} value={value} />
          ))}
        </dd>
      )}
    </div>
  );
}

/** A name with its explanation. The tooltip is created on demand: a message may have hundreds of headers. */
function Explained({ name, note }: { readonly name: string; readonly note: string }) {
  const [wanted, setWanted] = useState(false);
  const id = useId();
  return (
    <span onPointerEnter={() => setWanted(true)} onPointerLeave={() => setWanted(false)}>
      <button
        type="button"
        className={styles["explained"]}
        aria-describedby={wanted ? id : undefined}
        onFocus={() => setWanted(true)}
        onBlur={() => setWanted(false)}
        onKeyDown={(event) => {
          if (event.key !== "Escape" || !wanted) return;
          event.stopPropagation();
          setWanted(false);
        }}
      >
        {name}
      </button>
      {wanted && <NoteBubble id={id} note={note} />}
    </span>
  );
}

/** In the top layer, so that scroll containers do not clip it. */
function NoteBubble({ id, note }: { readonly id: string; readonly note: string }) {
  const bubble = useRef<HTMLSpanElement>(null);
  useLayoutEffect(() => {
    const element = bubble.current;
    const box = element?.parentElement?.getBoundingClientRect();
    if (element == null || box === undefined) return;
    element.showPopover();
    const { width, height } = element.getBoundingClientRect();
    element.style.left = `${Math.max(8, Math.min(box.left, innerWidth - width - 8))}px`;
    element.style.top = `${box.top - height - 4 < 8 ? box.bottom + 4 : box.top - height - 4}px`;
  }, []);
  return (
    <span ref={bubble} id={id} role="tooltip" popover="manual" className={styles["bubble"]}>
      {note}
    </span>
  );
}

function DecodedLine({ name, value }: { readonly name: string; readonly value: string }) {
  return (
    <>
      <span className={styles["quiet"]}>{name}</span>
      <span>{utf8Reading(value) ?? value}</span>
    </>
  );
}
