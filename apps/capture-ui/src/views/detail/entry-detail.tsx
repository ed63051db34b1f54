export const EntryDetail = (_: { readonly id: string; readonly onClose: () => void; readonly layout: "right" | "bottom" | "full" }) => null;
