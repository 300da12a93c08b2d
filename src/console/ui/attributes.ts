/** Text of others also reaches attributes that people read: there too, what is invisible is made visible. */
import { options } from "preact";
import { visibleString } from "../model/visible-text.js";

const READ = ["title", "aria-label", "placeholder"] as const;

/** For every element that is made from now on. */
export function showHiddenInAttributes(): void {
  const before = options.vnode;
  options.vnode = (node) => {
    if (typeof node.type === "string") {
      const props: Record<string, unknown> = node.props;
      for (const name of READ) {
        const text = props[name];
        if (typeof text === "string") props[name] = visibleString(text);
      }
    }
    before?.(node);
  };
}
