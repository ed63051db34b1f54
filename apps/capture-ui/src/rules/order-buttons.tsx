import { ArrowDown, ArrowUp, Trash2 } from "lucide-react";
import { IconButton } from "../ui/button.tsx";

/** Buttons that move an item up or down, or remove it; `remove` labels the last button. */
export function OrderButtons<Item>({
  items,
  index,
  remove,
  onChange,
}: {
  readonly items: readonly Item[];
  readonly index: number;
  readonly remove: string;
  readonly onChange: (items: readonly Item[]) => void;
}) {
  const move = (by: number): void => {
    const moved = items.slice(index, index + 1);
    onChange(items.toSpliced(index, 1).toSpliced(index + by, 0, ...moved));
  };
  return (
    <span>
      <IconButton label="Move up" icon={<ArrowUp size={14} />} disabled={index === 0} onClick={() => move(-1)} />
      <IconButton
        label="Move down"
        icon={<ArrowDown size={14} />}
        disabled={index === items.length - 1}
        onClick={() => move(1)}
      />
      <IconButton label={remove} icon={<Trash2 size={14} />} onClick={() => onChange(items.toSpliced(index, 1))} />
    </span>
  );
}
