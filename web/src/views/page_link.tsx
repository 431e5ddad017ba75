// A real link to a page: it can be copied and opened elsewhere, and a plain click stays in this one.

import type { ComponentChildren } from "preact";
import type { PageState } from "../lib/query_state";
import { href, openView } from "../state/route";

export function PageLink(props: {
  to: Partial<PageState>;
  class?: string;
  title?: string;
  label?: string;
  tabIndex?: number;
  children: ComponentChildren;
}) {
  return (
    <a
      class={props.class ?? "page-link"}
      href={href(props.to)}
      title={props.title}
      aria-label={props.label}
      tabIndex={props.tabIndex}
      onClick={(event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
        event.preventDefault();
        openView(props.to);
      }}
    >
      {props.children}
    </a>
  );
}
