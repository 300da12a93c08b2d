/** What the ready-made actions may access. */
import { defineSettings, list, pathKind, textKind } from "../base/index.js";

export const actionSettings = defineSettings({
  fileRoots: list("actions.file_roots", pathKind, {
    default: [],
    doc: "Directories that the file actions may read and write. Without any they reject every call.",
  }),
  allow: list("actions.allow", textKind, {
    default: [],
    doc: "Destinations outside the public internet that actions may call, such as `10.0.0.0/8` or `loopback`.",
  }),
});
