import type { ComponentPropsWithRef, MouseEvent } from "react";
import { navigate } from "./router.ts";

/** A link inside the app; modified clicks open it as the browser does. */
export function Link({ href, onClick, children, ...rest }: ComponentPropsWithRef<"a"> & { readonly href: string }) {
  const follow = (event: MouseEvent<HTMLAnchorElement>) => {
    onClick?.(event);
    if (event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    navigate(href);
  };
  return (
    <a {...rest} href={href} onClick={follow}>
      {children}
    </a>
  );
}
