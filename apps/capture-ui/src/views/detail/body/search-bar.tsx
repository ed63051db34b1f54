import { ChevronDown, ChevronUp, X } from "lucide-react";
import { useEffect, useRef } from "react";
import { Button, IconButton } from "../../../ui/button.tsx";
import { TextInput } from "../../../ui/field.tsx";
import { formatCount } from "../../../ui/format.ts";
import styles from "./body.module.css";
import type { BodySearch } from "./use-search.tsx";

/** The field, the options and the number of matches of a search in a body. */
export function SearchBar({ search, onClose }: { readonly search: BodySearch; readonly onClose: () => void }) {
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.focus(), []);
  const { query, setQuery } = search;
  const count = search.matches.length;
  const status =
    search.problem ??
    (query.text === ""
      ? ""
      : count === 0
        ? "No match"
        : `${formatCount(search.position + 1)} of ${formatCount(count)}${search.more ? "+" : ""}`);
  return (
    <div className={styles["search"]} role="search">
      <TextInput
        ref={input}
        mono
        aria-label="Search in the body"
        placeholder="Search in the body"
        value={query.text}
        onChange={(event) => setQuery({ ...query, text: event.target.value })}
        onKeyDown={(event) => {
          if (event.key === "Enter") search.step(event.shiftKey ? -1 : 1);
          else if (event.key === "Escape") onClose();
          else return;
          event.preventDefault();
          event.stopPropagation();
        }}
      />
      <Button
        variant="ghost"
        aria-label="Match case"
        title="Match case"
        pressed={query.matchCase}
        onClick={() => setQuery({ ...query, matchCase: !query.matchCase })}
      >
        Aa
      </Button>
      <Button
        variant="ghost"
        aria-label="Regular expression"
        title="Regular expression"
        pressed={query.regex}
        onClick={() => setQuery({ ...query, regex: !query.regex })}
      >
        .*
      </Button>
      <output className={search.problem === null ? styles["quiet"] : styles["problemText"]}>{status}</output>
      <span className={styles["grow"]} />
      <IconButton
        label="Previous match"
        keys="Shift Enter"
        icon={<ChevronUp size={14} />}
        disabled={count === 0}
        onClick={() => search.step(-1)}
      />
      <IconButton
        label="Next match"
        keys="Enter"
        icon={<ChevronDown size={14} />}
        disabled={count === 0}
        onClick={() => search.step(1)}
      />
      <IconButton label="Close the search" keys="Esc" icon={<X size={14} />} onClick={onClose} />
    </div>
  );
}
