/** The console: a page for people, and how they sign in. Its data comes from the routes of the other doors. */
import { defineExtension } from "../../extension/index.js";
import { sessionOf, sessionWith } from "./cookies.js";
import { consolePage } from "./files.js";
import { SignInLinks } from "./links.js";
import { sessionRoutes } from "./session-routes.js";
import { Sessions } from "./sessions.js";
import { consoleSettings } from "./settings.js";

export const consoleDoor = defineExtension({
  name: "console",
  settings: consoleSettings,
  create({ settings, server, clock, tokens, secret }) {
    const { enabled, session: lifetime, path } = settings;
    if (!enabled) return undefined;
    const sessions = new Sessions({ key: () => secret("console session"), clock, lifetime });
    let root = server.publicUrl;
    const url = () => `${(root ?? "").replace(/\/$/, "")}${path}/`;
    const links = new SignInLinks({ tokens, clock, lifetime, url, dev: server.dev });
    return {
      routes: sessionRoutes({ sessions, links, server, path, lifetime }),
      pages: [consolePage(path)],
      control: [links.control],
      credential: (request) => sessionOf(sessions, request, server.publicUrl),
      credentialWith: (cookies, proof) => sessionWith(sessions, cookies, proof)?.bearer,
      start(at) {
        // Browsers cannot open an address that means every interface.
        root ??= at.url.replace(/\/\/(?:0\.0\.0\.0|\[::\])/, "//localhost");
      },
      facts: () => ({ console: url() }),
    };
  },
});
