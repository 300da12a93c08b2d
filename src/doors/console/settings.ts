/** Settings of the console. */
import { boolean, defineSettings, duration, type Kind, setting, textKind } from "../../base/index.js";

const pathKind: Kind<string> = {
  ...textKind,
  name: "a path such as /console, without a slash at its end",
  brief: "path",
  parse: (raw) =>
    typeof raw === "string" && /^(?:\/[\w-][\w.-]*)+$/.test(raw) ? { value: raw } : { problem: undefined },
};

export const consoleSettings = defineSettings({
  enabled: boolean("console.enabled", {
    default: true,
    doc: "Serve the console, a page for people. Its data comes from routes that stay without it.",
  }),
  session: duration("console.session", {
    min: 1_000,
    default: "12h",
    doc: "How long a sign-in to the console lasts.",
  }),
  path: setting("console.path", pathKind, { default: "/console", doc: "Where the console is." }),
});
