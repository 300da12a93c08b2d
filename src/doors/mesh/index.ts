/** The mesh door: see README.md. */
export { MESH_CONTROL_PATH } from "./control.js";
export { MeshActions, type MeshFacts } from "./served-mesh.js";
