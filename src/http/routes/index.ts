import type { Door } from "../door.js";
import type { Route } from "../route.js";
import { adminRoutes } from "./admin.js";
import { docsRoutes } from "./docs.js";
import { interswarmRoutes } from "./interswarm.js";
import { knownSwarmRoutes } from "./known-swarms.js";
import { messageRoutes } from "./message.js";
import { metricsRoutes } from "./metrics.js";
import { serverRoutes } from "./server.js";
import { swarmRoutes } from "./swarms.js";
import { taskRoutes } from "./tasks.js";

/** Everything that the server serves. The document about them is served with them. */
export function allRoutes(door: Door): Route[] {
  const routes = [
    ...serverRoutes(door),
    ...messageRoutes(door),
    ...taskRoutes(door),
    ...swarmRoutes(door),
    ...knownSwarmRoutes(door),
    ...interswarmRoutes(door),
    ...adminRoutes(door),
    ...metricsRoutes(door),
  ];
  return [...routes, ...docsRoutes(door, routes)];
}
