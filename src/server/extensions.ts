/** Everything that a server serves. A new protocol or carrier is one line here, plus its own folder. */
import { a2a } from "../doors/a2a/extension.js";
import { consoleDoor } from "../doors/console/extension.js";
import { federation } from "../doors/federation/extension.js";
import { mail } from "../doors/mail/extension.js";
import { map } from "../doors/map/extension.js";
import { mcp } from "../doors/mcp/extension.js";
import { mesh } from "../doors/mesh/extension.js";

/** The extensions that `mailroom server` loads. */
export const standardExtensions = [mail, federation, map, mesh, mcp, a2a, consoleDoor] as const;
