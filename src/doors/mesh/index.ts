/** The mesh door: see README.md. */
export { MESH_CONTROL_PATH } from "./control.js";
export { createMeshHandler, type MeshRequest, type MeshResponse } from "./handler.js";
export { type Listener, type ListenerOptions, listen } from "./listener.js";
export {
  BatchBody,
  createOperatorHandler,
  InboxQuery,
  OPERATOR_ROUTES,
  type OperatorRequest,
  type OperatorRouteOptions,
  OutboxQuery,
  WakeBody,
} from "./operator-routes.js";
export { MeshActions, type MeshFacts, ServedMesh, type ServedMeshParts } from "./served-mesh.js";
