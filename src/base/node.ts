/** The part of the base module that needs Node, or a package that the client in a browser does without. */
export * from "./node/digest.js";
export * from "./node/directories.js";
export * from "./node/files.js";
export * from "./node/ids.js";
export * from "./node/sse.js";
export * from "./node/work-slice.js";
